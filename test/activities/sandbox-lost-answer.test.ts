/** Each kind of request to a sandbox, with its answer lost: it is sent again, and the worker gets what it would have got. */
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Sandbox } from "../../activities/sandbox/sandbox.ts";
import { type BreakingDocker, openTwoWays, type TwoWays } from "../support/breaking-docker.ts";
import { bash, useTestSandboxes, newId } from "../support/test-sandboxes.ts";

const sandboxes = useTestSandboxes();
let ways: TwoWays;
let breaking: BreakingDocker;
let sandbox: Sandbox;
let sound: Sandbox;

beforeAll(async () => {
  ways = await openTwoWays(sandboxes);
  ({ breaking, sandbox, sound } = ways);
});
afterAll(async () => {
  await ways.close();
});

/** @returns the answer to a request whose first answer is lost */
async function losingIts<T>(request: () => Promise<T>): Promise<T> {
  const before = breaking.lost;
  breaking.loseNextAnswer();
  const answer = await request();
  expect(breaking.lost).toBe(before + 1);
  return answer;
}

const text = (bytes: Uint8Array): string => Buffer.from(bytes).toString("utf8");
const bytes = (content: string): Uint8Array => Buffer.from(content);

test("a start: the command runs once", async () => {
  const id = newId();
  const argv = ["bash", "-c", "echo ran >> start.txt; sleep 300"];
  expect(await losingIts(() => sandbox.start({ id, argv }))).toMatchObject({ id, kind: "running" });
  await sandbox.kill(id, 0);
  expect((await bash(sound, "cat start.txt")).out).toBe("ran\n");
});

test("a run: the command runs once, and its end is reported", async () => {
  const argv = ["bash", "-c", "echo ran >> run.txt; exit 3"];
  expect(await losingIts(() => sandbox.run({ id: newId(), argv }))).toMatchObject({
    kind: "exited",
    exitCode: 3,
  });
  expect((await bash(sound, "cat run.txt")).out).toBe("ran\n");
});

test("a wait, a state, a list and a read", async () => {
  const { state } = await bash(sound, "echo said; exit 4");
  expect(await losingIts(() => sandbox.wait(state.id))).toEqual(state);
  expect(await losingIts(() => sandbox.state(state.id))).toEqual(state);
  expect(await losingIts(() => sandbox.list())).toContainEqual(state);
  expect(text(await losingIts(() => sandbox.read(state.id, "out", 0, 100)))).toBe("said\n");
});

test("a wait, several times", async () => {
  const id = newId();
  await sound.start({ id, argv: ["bash", "-c", "while [ ! -e go ]; do sleep 0.02; done; exit 5"] });
  const waiting = sandbox.wait(id);
  for (let times = 0; times < 3; times++) {
    // Answered over the stream on which the wait was sent again.
    await sandbox.list();
    breaking.breakStreams();
  }
  await sound.files.write("go", bytes(""));
  expect(await waiting).toMatchObject({ kind: "exited", exitCode: 5 });
});

test.each([
  ["ends on TERM", "sleep 300"],
  ["ignores TERM", "trap '' TERM; while :; do sleep 0.05; done"],
])("a kill of a command that %s", async (_, script) => {
  const id = newId();
  await sound.start({ id, argv: ["bash", "-c", script] });
  const state = await losingIts(() => sandbox.kill(id, 50));
  expect(state).toMatchObject({ kind: "killed", by: "request" });
  expect(await sound.state(id)).toEqual(state);
});

test("a file that is made, changed, looked at and removed", async () => {
  const made = await losingIts(() => sandbox.files.write("file.txt", bytes("one"), { ifHash: null }));
  expect(made).toMatchObject({ ok: true, created: true });
  const hash = made.ok ? made.hash : "";
  const changed = await losingIts(() => sandbox.files.write("file.txt", bytes("two"), { ifHash: hash }));
  expect(changed).toMatchObject({ ok: true, created: false });
  const read = await losingIts(() => sandbox.files.read("file.txt"));
  expect(read.ok && text(read.bytes)).toBe("two");
  expect(await losingIts(() => sandbox.files.stat("file.txt"))).toMatchObject({ ok: true, size: 3 });
  const removed = losingIts(() =>
    sandbox.files.remove("file.txt", { ifHash: changed.ok ? changed.hash : "" }),
  );
  expect(await removed).toEqual({ ok: true });
  expect(await sound.files.stat("file.txt")).toMatchObject({ ok: false, reason: "not-found" });
});
