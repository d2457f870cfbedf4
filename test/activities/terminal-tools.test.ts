import { describe, expect, it } from "vitest";
import { createSanitizer } from "../../activities/redaction/sanitizer.ts";
import type { InvokedTool } from "../../activities/tools/invoke.ts";
import { LeaveRunning } from "../../activities/tools/tool.ts";
import { useSandbox, useTestSandboxes } from "../support/test-sandboxes.ts";
import { callTool } from "../support/tool-context.ts";

const sandboxes = useTestSandboxes();
const sandbox = useSandbox(sandboxes, { memoryBytes: 1024 * 2 ** 20, pids: 256 });

type Overrides = Parameters<typeof callTool>[3];
let calls = 0;

/** Starts a command in a terminal; the result of it and its id. */
async function open(command: string, more: object = {}): Promise<InvokedTool & { id: string }> {
  calls += 1;
  const id = `t${calls}`;
  const result = await callTool(sandbox, "bash", { command, terminal: true, ...more }, { callKey: id });
  return { ...result, id };
}
const write = (id: string, input: object = {}, overrides?: Overrides): Promise<InvokedTool> =>
  callTool(sandbox, "write_stdin", { id, ...input }, overrides);
const sh = (command: string): Promise<InvokedTool> => callTool(sandbox, "bash", { command });
const kill = (id: string): Promise<InvokedTool> => callTool(sandbox, "kill_process", { id });

describe("programs that ask", () => {
  it("Python's prompt: answers, a multi-line block, an error, Ctrl-C, and its end", async () => {
    const opened = await open("python3");
    const { id } = opened;
    expect(opened.text).toContain(`id "${id}"`);
    expect(opened.text).toMatch(/^>>> \n\[cursor: row \d+, column 5 of 24 × 80\] \[waits for input\]$/m);
    expect(opened.isLive).toBe(true);
    expect((await write(id, { text: "6 * 7\n" })).text).toMatch(/>>> 6 \* 7\n42\n>>> \n/);
    const block = await write(id, { text: "for i in range(2):\n    print('row', i)\n\n" });
    expect(block.text).toMatch(/row 0\nrow 1\n>>> /);
    expect((await write(id, { text: "1/0\n" })).text).toContain("ZeroDivisionError");
    const slept = await write(id, { text: "import time; time.sleep(100)\n", wait_ms: 1_000 });
    expect(slept.text).toMatch(/\[running\]$/);
    expect((await write(id, { keys: ["ctrl+c"] })).text).toMatch(
      /KeyboardInterrupt\n>>> \n.*\[waits for input\]$/s,
    );
    const ended = await write(id, { text: "exit(3)\n", wait_ms: 10_000 });
    expect(ended.text).toMatch(/\[exited 3\]$/);
    expect(ended).toMatchObject({ exitCode: 3, isLive: false });
    expect(await write(id, { text: "1\n" })).toMatchObject({ outcome: "error" });
  });

  it("Node's prompt, with the history by the up key", async () => {
    const { id } = await open("node");
    expect((await write(id, { text: "[1, 2].map((x) => x * 2)\n" })).text).toContain("[ 2, 4 ]");
    const again = await write(id, { keys: ["up", "enter"] });
    expect(again.text.match(/\[ 2, 4 \]/g)).toHaveLength(1);
    expect((await write(id, { keys: ["ctrl+d"] })).text).toMatch(/\[exited 0\]$/);
  });

  it("`git add -p`: one hunk taken, the other left", async () => {
    await sh(
      "git init -q p && cd p && seq 30 > f && git add f && git -c user.name=a -c user.email=a@b commit -qm one",
    );
    await sh("cd p && sed -i 's/^2$/two/; s/^28$/twentyeight/' f");
    const { id, text } = await open("git add -p", { cwd: "p" });
    expect(text).toMatch(/\(1\/2\) Stage this hunk .*\?.*\[waits for input\]$/s);
    const next = (await write(id, { text: "y\n" })).text;
    expect(next).toContain("twentyeight");
    expect(next).not.toContain("+two\n");
    expect((await write(id, { text: "n\n" })).text).toMatch(/\[exited 0\]$/);
    expect((await sh("cd p && git diff --cached | grep '^[+-][a-z0-9]'")).text).toBe("-2\n+two");
  });

  it("`npm init`: every question answered", async () => {
    const { id } = await open("mkdir -p n && cd n && npm init");
    await expect
      .poll(async () => (await write(id, { show: "screen" })).text, { timeout: 60_000 })
      .toContain("package name");
    await write(id, { text: "asked\n" });
    for (let at = 0; at < 12; at++) {
      const { text } = await write(id, { keys: ["enter"] });
      if (text.endsWith("[exited 0]")) break;
    }
    expect((await sh("node -p 'require(\"./n/package.json\").name'")).text).toBe("asked");
  }, 90_000);

  it("pdb: a breakpoint, a value, and on", async () => {
    await sh("printf 'total = 0\\nfor i in range(3):\\n    total += i\\nprint(total)\\n' > d.py");
    const { id, text } = await open("python3 -m pdb d.py");
    expect(text).toMatch(/\(Pdb\) ?\n.*\[waits for input\]$/s);
    await write(id, { text: "break 4\n" });
    await write(id, { text: "continue\n" });
    expect((await write(id, { text: "p total * 100\n" })).text).toMatch(/^300$/m);
    await kill(id);
  });

  it("a password prompt: nothing typed is shown, nor repeated in the result", async () => {
    const { id, text } = await open("read -rsp 'Password: ' x; echo; echo ${#x} characters");
    expect(text).toMatch(
      /Password: \n.*\[waits for input\] \[what is typed is not shown, as for a password\]$/s,
    );
    const result = await write(id, { text: "correct horse\n" });
    expect(result.text).toMatch(/13 characters\n\[exited 0\]$/);
    expect(result.text).not.toContain("horse");
  });
});

describe("programs that draw a screen", () => {
  it("an editor and back: nano shows rows, saves, and the shell's screen is there again", async () => {
    await sh("printf 'alpha\\nbeta\\n' > note.txt");
    const { id } = await open("bash --norc --noprofile -i");
    await write(id, { text: "echo before\n" });
    const editor = await write(id, { text: "nano note.txt\n" });
    expect(editor.text).toMatch(/GNU nano/);
    expect(editor.text).toMatch(/alpha\nbeta/);
    expect(editor.text).not.toContain("before");
    const typed = await write(id, { keys: ["down"], text: "NEW " });
    expect(typed.text).toMatch(/NEW alpha/);
    await write(id, { keys: ["down", "end"], text: "" });
    const saved = await write(id, { keys: ["ctrl+s", "ctrl+x"] });
    expect(saved.text).toMatch(/before/);
    expect(saved.text).not.toMatch(/GNU nano/);
    expect((await sh("cat note.txt")).text).toBe("NEW alpha\nbeta");
    await kill(id);
  });

  it("arrow and function keys arrive as a curses program reads them, also with modifiers", async () => {
    const program = [
      "import curses",
      "def main(w):",
      "    w.keypad(True)",
      "    w.addstr(0, 0, 'ready'); w.refresh()",
      "    for row in range(1, 7):",
      "        w.addstr(row, 0, curses.keyname(w.getch()).decode()); w.refresh()",
      "    w.getch()",
      "curses.wrapper(main)",
    ].join("\n");
    await sh(`cat > k.py <<'END'\n${program}\nEND`);
    const { id } = await open("python3 k.py");
    const { text } = await write(id, { keys: ["up", "left", "f1", "f5", "pagedown", "ctrl+a"] });
    expect(text).toMatch(/KEY_UP\n.*KEY_LEFT\n.*KEY_F\(1\)\n.*KEY_F\(5\)\n.*KEY_NPAGE\n.*\^A/);
    await kill(id);
  });

  it("is told of another size by write_stdin, and draws with it", async () => {
    const script =
      "trap 'clear; stty size; printf %s \"$(seq -s, 60)\"' WINCH; echo up; while :; do sleep 0.05; done";
    const { id } = await open(script, { rows: 10, cols: 40 });
    const { text } = await write(id, { rows: 30, cols: 200 });
    expect(text).toContain("30 200");
    expect(text).toContain("55,56,57,58,59,60");
    expect(text).toMatch(/\[cursor: row 2, column \d+ of 30 × 200\]/);
    await kill(id);
  });
});

describe("a terminal's output", () => {
  it("of 10 MB is drawn from its end, within a second or two, and bash_output has it", async () => {
    const { id } = await open("read; yes | head -c 10000000; echo; echo the end");
    const began = performance.now();
    const { text } = await write(id, { text: "\n", wait_ms: 20_000 });
    expect(performance.now() - began).toBeLessThan(15_000);
    expect(text).toMatch(
      /y\n\nthe end\n\[more than this was new: bash_output id="t\d+" has all of the output\]\n\[exited 0\]$/s,
    );
    const raw = await callTool(sandbox, "bash_output", { id, offset: 5_000_000 });
    expect(raw.text).toMatch(/^y\ny\ny/);
  });

  it("that never ends is looked at all the same, and ended", async () => {
    const { id, text } = await open("yes");
    expect(text).toMatch(/y\n.*\[running\]$/s);
    const began = performance.now();
    await kill(id);
    expect(performance.now() - began).toBeLessThan(1_000);
  });

  it("that is no UTF-8 is drawn with replacement characters", async () => {
    const { text } = await open(String.raw`printf 'a\377b\300\n\303'; printf '\251 c\n'`);
    expect(text).toMatch(/a\uFFFDb\uFFFD\né c\n\[exited 0\]$/);
  });

  it("that is made to keep a terminal busy is not drawn for long, and costs the worker nothing", async () => {
    const script = String.raw`python3 -c 'import sys; sys.stdout.write("a\x1b[2147483647b\x1b[2147483647S\x1b[2147483647L" + "\x1b[999S" * 150000 + "\nend\n")'`;
    const began = performance.now();
    const { text } = await open(script);
    expect(performance.now() - began).toBeLessThan(20_000);
    expect(text).toContain("end");
  }, 30_000);

  it("shows only what is new, also what came between two calls", async () => {
    const { id } = await open("echo one; read; echo two; read; echo never");
    const first = await write(id, { text: "x\n" });
    expect(first.text).toMatch(/two/);
    expect(first.text).not.toMatch(/one/);
    expect((await write(id)).text).toMatch(/^\(nothing new\)\n/);
    await sandbox.feed(id, { once: "other" }, Buffer.from("y\r"), { last: false });
    await expect.poll(async () => (await sandbox.state(id))?.kind).toBe("exited");
    expect((await write(id)).text).toMatch(/y\nnever\n\[exited 0\]$/);
    expect((await write(id, { show: "screen" })).text).toMatch(/^one\n/);
  });

  it("is given as it came with show: output", async () => {
    const { id } = await open("read; printf '\\033[31mred\\033[0m\\rRED\\n'");
    expect((await write(id, { text: "\n", show: "output" })).text).toMatch(/RED\n\[exited 0\]$/);
  });
});

describe("typing happens once", () => {
  it("though the worker is killed between the write and the look", async () => {
    const { id } = await open("cat > typed.txt");
    const at = { callKey: "s9c9" };
    const controller = new AbortController();
    const first = write(id, { text: "only once\n", wait_ms: 30_000 }, { ...at, signal: controller.signal });
    await expect.poll(async () => (await sandbox.state(id))?.outBytes).toBeGreaterThan(0);
    controller.abort(new LeaveRunning());
    await first.catch(() => undefined);
    const second = await write(id, { text: "only once\n" }, { ...at, resumed: true });
    expect(second.text).toMatch(/only once/);
    await write(id, { keys: ["ctrl+d"] });
    expect((await sh("cat typed.txt")).text).toBe("only once");
  });

  it("by another worker, which follows it over its own connection", async () => {
    const spec = sandboxes.spec();
    const first = await sandboxes.host.open(spec);
    await callTool(first, "bash", { command: "cat > other.txt", terminal: true }, { callKey: "s1c0" });
    await first.feed("s1c0", { once: "s2c0" }, Buffer.from("line\r"), { last: false });
    const second = await sandboxes.newHost().open(spec);
    const at = { callKey: "s2c0", resumed: true };
    const result = await callTool(second, "write_stdin", { id: "s1c0", text: "line\n" }, at);
    expect(result.text).toMatch(/^line\n/);
    await callTool(second, "write_stdin", { id: "s1c0", keys: "ctrl+d" });
    expect((await callTool(second, "bash", { command: "cat other.txt" })).text).toBe("line");
  });

  it("or is not known, once the sandbox was restarted", async () => {
    const spec = sandboxes.spec();
    const before = await sandboxes.host.open(spec);
    await callTool(before, "bash", { command: "cat", terminal: true }, { callKey: "s1c0" });
    await sandboxes.docker.getContainer(before.container).restart({ t: 0 });
    const after = await sandboxes.newHost().open(spec);
    const at = { callKey: "s2c0" };
    const repeated = await callTool(
      after,
      "write_stdin",
      { id: "s1c0", text: "x\n" },
      { ...at, resumed: true },
    );
    expect(repeated).toMatchObject({ outcome: "unknown" });
    expect(repeated.text).toContain("It was not typed again");
    const fresh = await callTool(after, "write_stdin", { id: "s1c0", text: "x\n" }, { callKey: "s3c0" });
    expect(fresh).toMatchObject({ outcome: "error" });
    expect(fresh.text).toMatch(/Nothing was typed: the sandbox was restarted/);
  });
});

describe("a stop", () => {
  it("of a wait sends nothing, leaves the program, and takes at most 0.5 s", async () => {
    const { id } = await open("cat");
    const controller = new AbortController();
    const running = write(id, { text: "sleepy\n", wait_ms: 30_000 }, { signal: controller.signal });
    await expect.poll(async () => (await sandbox.state(id))?.outBytes).toBeGreaterThan(0);
    controller.abort(new Error("interrupt"));
    const began = performance.now();
    const result = await running;
    expect(performance.now() - began).toBeLessThan(500);
    expect(await sandbox.state(id)).toMatchObject({ kind: "running" });
    expect(["interrupted", "completed"]).toContain(result.outcome);
    await kill(id);
  });

  it("of a wait for a silent program is an interruption, with what there is", async () => {
    const { id } = await open("sleep 300");
    const controller = new AbortController();
    const running = write(
      id,
      { text: "typed\n", wait_ms: 30_000 },
      { signal: controller.signal, callKey: "s7c7" },
    );
    await expect.poll(async () => (await sandbox.state(id))?.outBytes).toBeGreaterThan(0);
    controller.abort(new Error("interrupt"));
    const began = performance.now();
    expect(await running).toMatchObject({ outcome: "interrupted" });
    expect(performance.now() - began).toBeLessThan(500);
    const before = performance.now();
    await kill(id);
    expect(performance.now() - before).toBeLessThan(500);
  });

  it.each([
    ["bash_output", "cat"],
    ["kill_process", "trap '' HUP TERM INT; while :; do sleep 0.1; done"],
  ])("and %s work as for any background command", async (_name, command) => {
    const { id } = await open(command);
    expect((await callTool(sandbox, "bash_output", { id })).text).toMatch(/running for/);
    const began = performance.now();
    expect((await kill(id)).text).toMatch(/ended by/);
    expect(performance.now() - began).toBeLessThan(600);
  });
});

describe("a secret", () => {
  const SECRET = "hunter2-hunter2-hunter2";
  const { clean, maskWindow } = createSanitizer([SECRET]);
  const masked = (id: string, input: object) =>
    callTool(sandbox, "write_stdin", { id, ...input }, { maskWindow }, { clean });

  it.each(["changes", "screen", "output"])("typed in two writes is masked by show: %s", async (show) => {
    const { id } = await open("cat");
    await masked(id, { text: SECRET.slice(0, 9), show });
    const second = await masked(id, { text: `${SECRET.slice(9)}\n`, show });
    expect(second.text).not.toContain(SECRET.slice(9, 20));
    expect(second.text).toContain("[masked]");
    await kill(id);
  });

  it("broken at the edge of the screen is masked, by the terminal or by the program", async () => {
    const { id } = await open("read; read", { cols: 40 });
    const wrapped = await masked(id, { text: `${"-".repeat(30)}${SECRET}` });
    expect(wrapped.text).not.toContain("hunter2-hu");
    expect(wrapped.text).toContain("[masked]");
    await kill(id);
    const place = String.raw`printf '\033[?1049h\033[5;31H%s\033[6;1H%s' ${SECRET.slice(0, 10)} ${SECRET.slice(10)}; read`;
    const drawn = await open(place, { cols: 40 });
    const { text } = await masked(drawn.id, { show: "screen" });
    expect(text).not.toContain("hunter2");
    await kill(drawn.id);
  });
});

describe("what is wrong is said by name", () => {
  it.each([
    [{ keys: ["hyper+q"] }, /keys: there is no key "hyper\+q"/],
    [{ text: "x".repeat(5_000) }, /text: .* takes whole lines/],
    [{ wait_ms: 60_000 }, /wait_ms/],
    [{ show: "all" }, /show/],
    [{ rows: 1 }, /rows/],
  ])("as of %j", async (input, expected) => {
    const { id } = await open("cat");
    const result = await write(id, input);
    expect(result).toMatchObject({ outcome: "error" });
    expect(result.text).toMatch(expected);
    await kill(id);
  });

  it("as of a program that does not read what is typed", async () => {
    const { id } = await open("stty raw -echo; sleep 300");
    const long = "x".repeat(32_000);
    let result = await write(id, { text: long, wait_ms: 0 });
    for (let at = 0; at < 20 && result.outcome === "completed"; at++)
      result = await write(id, { text: long, wait_ms: 0 });
    expect(result).toMatchObject({ outcome: "error" });
    expect(result.text).toMatch(/^Nothing was typed: .* has not read [0-9,]+ bytes/);
    await kill(id);
  });

  it("as of a command without a terminal, and of one that never was", async () => {
    const id = "plain";
    await callTool(sandbox, "bash", { command: "sleep 60", background: true }, { callKey: id });
    expect((await write(id, { text: "x" })).text).toMatch(/has no terminal/);
    expect((await write("s99c9", { text: "x" })).text).toMatch(/No command with the id/);
    expect((await callTool(sandbox, "bash", { command: "true", rows: 5 })).text).toMatch(/rows and cols/);
    await kill(id);
  });
});
