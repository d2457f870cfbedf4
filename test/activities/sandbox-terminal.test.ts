import { describe, expect, test } from "vitest";
import type { Sandbox, TerminalLook } from "../../activities/sandbox/sandbox.ts";
import { bash, newId, useSandbox, useTestSandboxes } from "../support/test-sandboxes.ts";

const sandboxes = useTestSandboxes();
const sandbox = useSandbox(sandboxes);

const SIZE = { rows: 24, cols: 80 };
const USUAL = { quietMs: 1_000, askMs: 100, timeoutMs: 20_000 };

const READS_IN_THREAD = "python3 -c 'import sys,threading; threading.Thread(target=sys.stdin.read).start()'";

async function open(command: string, size = SIZE): Promise<string> {
  const id = newId();
  const argv = ["bash", "-c", command];
  const state = await sandbox.start({ id, argv, terminal: size, background: true });
  expect(state.kind).toBe("running");
  return id;
}

const textOf = ({ bytes }: TerminalLook): string => Buffer.from(bytes).toString("utf8");
const type = (id: string, text: string, once = newId()): Promise<boolean> =>
  sandbox.feed(id, { once }, Buffer.from(text), { last: false });
const look = (id: string, more: Partial<Parameters<Sandbox["look"]>[1]> = {}): Promise<TerminalLook> =>
  sandbox.look(id, { ...USUAL, ...more });
async function untilPrinted(id: string, text: string): Promise<void> {
  await expect
    .poll(async () => textOf(await look(id, { timeoutMs: 200 })), { timeout: 15_000 })
    .toContain(text);
}

describe("a command with a terminal", () => {
  test("has it as its three streams, owns it, and sees its size and name", async () => {
    const script =
      "test -t 0 -a -t 1 -a -t 2 && stty size && stat -c %u $(tty) && echo $TERM $PAGER $GIT_PAGER";
    const id = await open(script, { rows: 31, cols: 101 });
    const state = await sandbox.wait(id, { timeoutMs: 20_000 });
    expect(state).toMatchObject({ kind: "exited", exitCode: 0, terminal: { rows: 31, cols: 101 } });
    const out = Buffer.from(await sandbox.read(id, "out", 0, 1_000)).toString();
    expect(out).toBe("31 101\r\n1000\r\nxterm-256color cat cat\r\n");
  });

  test("reads what is typed, in lines, and sees Ctrl-C and Ctrl-D", async () => {
    const id = await open("trap 'echo caught' INT; cat; cat; echo end");
    await type(id, "hello\r");
    await untilPrinted(id, "hello\r\nhello\r\n");
    await type(id, "\u0003");
    await untilPrinted(id, "caught");
    await type(id, "\u0004");
    expect(await sandbox.wait(id, { timeoutMs: 20_000 })).toMatchObject({ kind: "exited", exitCode: 0 });
    expect(textOf(await look(id))).toMatch(/end\r\n$/);
  });

  test("gets a piece that is sent twice under one name once, and what is new stays new for it", async () => {
    const id = await open("cat");
    await type(id, "one\r", "first");
    await untilPrinted(id, "one\r\none\r\n");
    const seen = (await look(id)).newFrom;
    await type(id, "two\r", "second");
    await untilPrinted(id, "two\r\ntwo\r\n");
    await type(id, "two\r", "second");
    const again = await look(id, { once: "second" });
    expect(textOf(again)).toBe("one\r\none\r\ntwo\r\ntwo\r\n");
    expect(again).toMatchObject({ newFrom: seen, bytesFrom: 0 });
    await sandbox.kill(id);
  });

  test("is told of another size, once", async () => {
    const id = await open("trap 'stty size' WINCH; echo ready; while :; do sleep 0.05; done");
    await untilPrinted(id, "ready");
    await sandbox.resize(id, { rows: 40, cols: 132 });
    expect(await sandbox.resize(id, { rows: 40, cols: 132 })).toMatchObject({
      terminal: { rows: 40, cols: 132 },
    });
    await untilPrinted(id, "40 132");
    expect(textOf(await look(id, { timeoutMs: 500 })).match(/40 132/g)).toHaveLength(1);
    await sandbox.kill(id);
  });

  test("may set its size itself, and the worker knows", async () => {
    const id = await open("stty rows 50 cols 20; cat");
    await expect.poll(async () => (await sandbox.state(id))?.terminal).toMatchObject({ rows: 50, cols: 20 });
    await sandbox.kill(id);
    expect(await sandbox.state(id)).toMatchObject({ terminal: { rows: 50, cols: 20 } });
  });

  test("that does not read keeps nobody waiting, and says how much it has not read", async () => {
    const id = await open("stty raw -echo; echo ready; sleep 100");
    await untilPrinted(id, "ready");
    const began = performance.now();
    await type(id, "x".repeat(300_000));
    expect(performance.now() - began).toBeLessThan(2_000);
    expect((await look(id, { quietMs: 100 })).state.terminal?.unreadBytes).toBeGreaterThan(100_000);
    await sandbox.kill(id);
  });

  test("that cannot be started is refused, as any other", async () => {
    const state = await sandbox.start({ id: newId(), argv: ["no-such-program"], terminal: SIZE });
    expect(state).toMatchObject({ kind: "refused" });
    expect((await bash(sandbox, "ls /proc/1/fd | wc -l")).state).toMatchObject({ kind: "exited" });
  });
});

describe("whether a program waits for input", () => {
  test.each([
    ["a prompt of Python", "python3 -q", true],
    ["a prompt of Node", "node -i", true],
    ["a shell", "bash --norc -i", true],
    ["a program that reads lines", "cat", true],
    ["a pager", "less /etc/passwd", true],
    ["an editor", "nano /tmp/x", true],
    ["a question of a shell script", "read -rsp 'Password: ' x", true],
    ["a program that polls with select", "python3 -c 'import select,sys; select.select([0], [], [])'", true],
    ["a program that reads in another thread", READS_IN_THREAD, true],
    ["a program behind a pipe that reads the terminal", "echo a | (cat; cat </dev/tty)", true],
    ["a sleep", "sleep 100", false],
    [
      "a program that polls something else",
      "python3 -c 'import os,select; select.select([os.pipe()[0]], [], [])'",
      false,
    ],
    ["a server of Node", "node -e 'require(\"net\").createServer().listen(0)'", false],
    ["a busy program", "python3 -c 'while True: pass'", false],
    ["a reader in the background", "bash --norc -ic 'cat & sleep 100'", false],
  ])("is known of %s", async (_what, command, waits) => {
    const id = await open(command);
    await expect.poll(async () => (await look(id, { quietMs: 300 })).waits, { timeout: 15_000 }).toBe(waits);
    if (!waits) expect((await look(id, { quietMs: 500 })).waits).toBe(false);
    await sandbox.kill(id);
  });

  test("and whether what is typed is shown", async () => {
    const id = await open("read -rsp 'Password: ' x; echo; read y");
    await expect.poll(async () => (await look(id)).echoes).toBe(false);
    await type(id, "hunter22\r");
    await expect.poll(async () => (await look(id)).echoes).toBe(true);
    await sandbox.kill(id);
  });
});

describe("ending a terminal", () => {
  test.each([
    ["ignores HUP, TERM and INT", "trap '' HUP TERM INT; echo up; while :; do sleep 0.1; done"],
    ["is a shell", "echo up; exec bash --norc -i"],
    ["has left the session", "(trap '' HUP; setsid sleep 300 >/dev/null 2>&1) & echo up; wait"],
    ["is stopped", "echo up; kill -STOP $$"],
  ])("takes at most 0.5 s if the program %s", async (_what, command) => {
    const id = await open(command);
    await untilPrinted(id, "up");
    const began = performance.now();
    expect(await sandbox.kill(id)).toMatchObject({ kind: "killed", by: "request" });
    expect(performance.now() - began).toBeLessThan(500);
    const { out } = await bash(sandbox, "pgrep -u 1000 -fc '[s]leep 300|no[r]c' || true");
    expect(out).toBe("0\n");
  });

  test("happens when its program ends, though children of it hold it", async () => {
    const id = await open("(trap '' HUP; sleep 300) & echo up");
    expect(await sandbox.wait(id, { timeoutMs: 10_000 })).toMatchObject({ kind: "exited", exitCode: 0 });
    expect(textOf(await look(id))).toBe("up\r\n");
    await sandbox.kill(id);
  });
});

test("twenty commands may run in the background at once, terminals among them", async () => {
  const other = await sandboxes.host.open(sandboxes.spec());
  const start = (at: number) =>
    other.start({
      id: `b${at}`,
      argv: ["sleep", "300"],
      background: true,
      terminal: at % 2 === 0 ? SIZE : undefined,
    });
  const states = await Promise.all(Array.from({ length: 21 }, (_, at) => start(at)));
  expect(states.filter(({ kind }) => kind === "running")).toHaveLength(20);
  expect(states.find(({ kind }) => kind === "refused")).toMatchObject({
    reason: "20 commands run in the background, as many as may: end one with kill_process",
  });
  await other.kill("b0");
  expect(await other.start({ id: "late", argv: ["sleep", "300"], background: true })).toMatchObject({
    kind: "running",
  });
  expect(await other.run({ id: "foreground", argv: ["true"] })).toMatchObject({ kind: "exited" });
});
