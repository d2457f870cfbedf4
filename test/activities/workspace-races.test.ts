/**
 * Saves in parallel with programs that never rest, in real sandboxes: files rewritten, renamed, removed and made all the time while two
 * workers save at once. What is restored in the end is what is there in the end; what was never touched is in every save.
 */
import { expect, it } from "vitest";
import type { Sandbox } from "../../activities/sandbox/sandbox.ts";
import { restoreWorkspace } from "../../activities/workspace/workspace.ts";
import { checkpointChain, latestCheckpoint, readWorkspace } from "../../activities/store/checkpoints.ts";
import { recordSandbox } from "../../activities/store/sandboxes.ts";
import { bash, useTestSandboxes } from "../support/test-sandboxes.ts";
import { newSessionIn, saveOf } from "../support/session-in-sandbox.ts";
import { useDatabase } from "../support/test-database.ts";

const ROUNDS = 5;
const STILL = 200;

const sandboxes = useTestSandboxes();
const database = useDatabase(6);

const newSession = (sandbox: Sandbox) => newSessionIn(sandbox, database.store);
const saver = (sandbox: Sandbox) => saveOf(sandbox, database.store);

const WRITERS = `
  mkdir -p still moving; for i in $(seq ${STILL}); do echo "still $i" > still/$i; done; touch ready
  same() { while [ ! -e stop ]; do for c in a b c d; do printf %s "$c$c$c$c" > moving/same; done; done; }
  rename() { while [ ! -e stop ]; do echo r > moving/one; mv moving/one moving/two; mv moving/two moving/three; done; }
  churn() { while [ ! -e stop ]; do i=$((RANDOM % 50)); mkdir -p moving/d$i; echo $RANDOM > moving/d$i/f; rm -rf moving/d$(( (i + 25) % 50 )); done; }
  kinds() { while [ ! -e stop ]; do rm -rf moving/kind; echo f > moving/kind; rm moving/kind; mkdir moving/kind; rmdir moving/kind; ln -s still moving/kind; done; }
  same & rename & churn & kinds & wait`;
const LOOK = `find . -path ./stop -prune -o -type f -printf '%P %m ' -exec sha256sum {} ';' -o -type l -printf '%P -> %l\\n' -o -printf '%P %m\\n' | sort`;

it("what is saved under running programs by two workers at once comes back whole", async () => {
  const [sandbox, other] = [
    await sandboxes.host.open(sandboxes.spec({ cpus: 1 })),
    await sandboxes.host.open(sandboxes.spec()),
  ];
  const session = await newSession(sandbox);
  const { db } = database.store;
  await sandbox.start({ id: "writers", argv: ["bash", "-c", WRITERS] });
  while (!(await sandbox.files.stat("ready")).ok) await new Promise((resolve) => setTimeout(resolve, 50));
  const savers = [saver(sandbox), saver(sandbox)];
  for (let step = 1; step <= ROUNDS; step += 1) {
    // The slower of two may find its step overtaken, or the other's save in between.
    await Promise.all(
      savers.map((save, at) =>
        save(session, step + at).catch((error: Error) =>
          expect(error.message).toContain("Another worker is saving this workspace too"),
        ),
      ),
    );
    const files = await readWorkspace(db, session.id);
    const still = files?.filter((file) => file.path.startsWith("still/")) ?? [];
    expect(still).toHaveLength(STILL);
  }
  await sandbox.files.write("stop", Buffer.from(""));
  expect(await sandbox.wait("writers", { timeoutMs: 60_000 })).toMatchObject({ kind: "exited" });
  await savers[0]?.(session, ROUNDS + 2);
  const latest = await latestCheckpoint(db, session.id);
  await restoreWorkspace(other, await checkpointChain(db, latest?.id ?? 0));
  const [is, was] = [(await bash(other, LOOK)).out, (await bash(sandbox, LOOK)).out];
  expect(is).toBe(was);
  expect(is.split("\n").length).toBeGreaterThan(STILL);
  expect(await savers[0]?.(session, ROUNDS + 3)).toEqual({ changed: 0, bytes: 0 });
}, 120_000);

it("a content written twice within one tick of the clock, at the same size, is not missed", async () => {
  const sandbox = await sandboxes.host.open(sandboxes.spec());
  const session = await newSession(sandbox);
  const save = saver(sandbox);
  for (let step = 1; step <= 8; step += 1) {
    await sandbox.files.write("same", Buffer.from(`v${step}`));
    await Promise.all([save(session, step), sandbox.files.write("same", Buffer.from(`w${step}`))]);
    await save(session, step);
    const [file] = (await readWorkspace(database.store.db, session.id)) ?? [];
    expect(file?.kind === "file" && Buffer.from(file.bytes).toString()).toBe(`w${step}`);
  }
});

it("a late save of another line, or of a sandbox that was given up, writes nothing", async () => {
  const [sandbox, moved] = [
    await sandboxes.host.open(sandboxes.spec()),
    await sandboxes.host.open(sandboxes.spec()),
  ];
  const session = await newSession(sandbox);
  const { db } = database.store;
  await sandbox.files.write("a", Buffer.from("1"));
  expect((await saver(sandbox)(session, 1)).changed).toBe(1);
  await sandbox.files.write("a", Buffer.from("late"));
  expect((await saver(sandbox)({ ...session, epoch: 2 }, 9)).changed).toBe(0);
  await recordSandbox(db, session.id, { ...moved.identity, taskQueue: undefined });
  expect((await saver(sandbox)(session, 9)).changed).toBe(0);
  expect((await latestCheckpoint(db, session.id))?.step).toBe(1);
});
