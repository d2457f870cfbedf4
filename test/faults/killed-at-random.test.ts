/** A worker that is killed repeatedly at random moments of its work. */
import { eq } from "drizzle-orm";
import { expect, it } from "vitest";
import { sandboxes } from "../../activities/store/schema/index.ts";
import { checkSession } from "../support/checker/check-session.ts";
import { eventually } from "../support/eventually.ts";
import { startKillableSession } from "../support/killable-session.ts";
import { call, scriptedModel, text } from "../support/scripted-model.ts";
import { resultTexts } from "../support/stored.ts";
import { useDatabase } from "../support/test-database.ts";

const STEPS = 20;
const KILLS = 10;
/** Within a step's duration, so that each part of it is hit sooner or later. */
const LATEST_MS = 400;

const database = useDatabase(10);

async function isSaved(sessionId: string): Promise<boolean> {
  const [row] = await database.store.db
    .select({ begun: sandboxes.savesBegun })
    .from(sandboxes)
    .where(eq(sandboxes.sessionId, sessionId));
  return (row?.begun ?? 0) === 0;
}

it(
  "ten times in twenty steps: lines are written once, in order, and answers paid once a kill",
  { tags: ["R1", "A26", "invariant-2"] },
  async () => {
    // By the request's content: an answer that was lost with the worker is given again.
    const script = scriptedModel().forever(({ items }) => {
      const step = items.filter(({ type }) => type === "result").length + 1;
      if (step > STEPS + 1) return { parts: [text("Done.")] };
      const line = `line-${step}`;
      const command = step > STEPS ? "cat n.marks" : `echo ${line} >> n.marks; sleep 0.1; echo ${line}`;
      return { parts: [call("bash", { command })] };
    });
    const session = await startKillableSession(database, script);
    const delays: number[] = [];
    let worker = await session.startWorker();
    for (let kill = 1; kill <= KILLS; kill += 1) {
      const asked = kill * (STEPS / KILLS) - 1;
      await eventually(`${asked} requests`, () => session.model.log.length >= asked, 120_000);
      // The random moment is the point of this test: there is no condition to wait for.
      const delayMs = Math.random() * LATEST_MS;
      delays.push(Math.round(delayMs));
      await new Promise((resolve) => setTimeout(resolve, delayMs));
      await worker.kill();
      worker = await session.startWorker();
      // Two workers in a row that die during a save park the session, by design: let a save finish in between.
      await eventually("a save that ended", () => isSaved(session.id), 120_000);
    }
    console.log(`killed ${delays.join(", ")} ms after a request; ${session.model.log.length} requests`);
    expect(await session.handle.result()).toMatchObject({ status: "completed", steps: STEPS + 2 });
    const lines = Array.from({ length: STEPS }, (_value, index) => `line-${index + 1}`);
    expect(await resultTexts(database.store, session.id)).toEqual([...lines, lines.join("\n")]);
    expect(session.model.log.length).toBeLessThanOrEqual(STEPS + 2 + KILLS);
    await checkSession(session.services, session, { kills: KILLS });
  },
);
