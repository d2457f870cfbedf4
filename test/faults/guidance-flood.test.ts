/** A flood of guidance while a worker dies: every message is delivered once, in the order of its acceptance. */
import { expect, it } from "vitest";
import { checkSession } from "../support/checker/check-session.ts";
import { startKillableSession, type KillableSession } from "../support/killable-session.ts";
import { call, scriptedModel, text } from "../support/scripted-model.ts";
import { transcriptOf } from "../support/stored.ts";
import { useDatabase } from "../support/test-database.ts";
import { untilCalls } from "../support/waits.ts";
import { touch } from "../support/in-container.ts";

const database = useDatabase(5);

/** The server's limit of signals in one run. */
const SIGNALS = 10_000;
const DUPLICATES = 100;
const AT_ONCE = 40;

/** Messages of two hundred bytes, this many at once, as fast as the server accepts them. */
async function send({ handle }: KillableSession, from: number, to: number): Promise<void> {
  let next = from;
  const lane = async () => {
    while (next < to) {
      const id = `m${next++}`;
      await handle.signal("guidance", { id, text: `${id} `.padEnd(160, "x") });
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, lane));
}

const WAIT = "until [ -e go ]; do sleep 0.1; done; echo went";

it(
  "ten thousand messages during one command are each delivered once, in order, over a crash",
  { tags: ["R44", "A7", "A10", "invariant-6"], timeout: 600_000 },
  async () => {
    const script = scriptedModel().forever(({ items }) =>
      items.some((item) => item.type === "call")
        ? { parts: [text("Heard.")] }
        : { parts: [call("bash", { command: WAIT, timeout_seconds: 600 })] },
    );
    const session = await startKillableSession(database, script);
    const first = await session.startWorker();
    await untilCalls(database.store, session.id, "running");
    const half = SIGNALS / 2;
    const begun = Date.now();
    await send(session, 0, half);
    await first.kill();
    // No worker runs for these; the first ones are sent again when the workflow has long forgotten their ids.
    await Promise.all([send(session, half, SIGNALS - DUPLICATES), send(session, 0, DUPLICATES)]);
    console.log(`flood: ${SIGNALS} signals in ${Date.now() - begun} ms`);
    await session.startWorker();
    await touch(session.sandbox, "/workspace/go");
    expect(await session.handle.result()).toMatchObject({ status: "completed", result: "Heard." });

    const rows = (await transcriptOf(database.store, session.id)).filter((row) => row.kind === "guidance");
    const delivered = rows.flatMap((row) => (row.meta as { ids: string[] }).ids);
    expect(delivered).toHaveLength(SIGNALS - DUPLICATES);
    expect(new Set(delivered).size).toBe(SIGNALS - DUPLICATES);
    expect(rows.length).toBeGreaterThan(1);
    expect(session.model.log.every((served) => served.refused === undefined)).toBe(true);
    await checkSession(session.services, session, { kills: 1 });
  },
);
