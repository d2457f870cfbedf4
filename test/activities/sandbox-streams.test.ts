import { beforeAll, expect, test } from "vitest";
import { textsApart } from "../../activities/text/streams.ts";
import { commandOutput } from "../../activities/sandbox/command-output.ts";
import type { Sandbox, SandboxCommand } from "../../activities/sandbox/sandbox.ts";
import { newId, useTestSandboxes, waitUntil } from "../support/test-sandboxes.ts";
import { callTool } from "../support/tool-context.ts";

const sandboxes = useTestSandboxes();
let sandbox: Sandbox;
beforeAll(async () => {
  sandbox = await sandboxes.host.open(sandboxes.spec());
});

const MIB = 1_048_576;
const APART = { mergeOutput: true, tellApart: true } as const;

/** Which of them arrived first is not certain. */
const WROTE_BOTH = new Set(["stdout: out\n", "stderr: err\n"]);

/** A call of the tool, with what each stream has. */
async function bash(command: string) {
  const result = await callTool(sandbox, "bash", { command });
  return { ...result, ...textsApart(result.text, result.streams ?? null) };
}

const python = (...lines: readonly string[]) => `python3 - <<'END'\n${lines.join("\n")}\nEND`;

async function ran(command: Omit<SandboxCommand, "id" | keyof typeof APART>) {
  const id = newId();
  const state = await sandbox.run({ ...command, ...APART, id });
  return { id, state, output: await commandOutput(sandbox, state, 120_000) };
}

test("a command's streams are merged in the order of arrival, and can be told apart", async () => {
  const id = newId();
  const turn = (line: string, next: string) => `echo ${line}; until [ -e ${next} ]; do sleep 0.02; done`;
  const script = [turn("one", "g1"), `${turn("two >&2", "g2")}`, turn("three", "g3"), "exit 3"].join("\n");
  await sandbox.start({ id, argv: ["bash", "-c", script], ...APART });
  for (const [file, bytes] of [
    ["g1", 4],
    ["g2", 8],
    ["g3", 14],
  ] as const) {
    await waitUntil(async () => (await sandbox.state(id))?.outBytes === bytes, `${bytes} bytes`, 20_000);
    await sandbox.run({ id: newId(), argv: ["touch", file] });
  }
  const state = await sandbox.wait(id);
  expect(state).toMatchObject({ kind: "exited", exitCode: 3, outBytes: 14, errBytes: 0, turnsBytes: 16 });
  expect((await commandOutput(sandbox, state, 1_000)).runs).toEqual([
    { by: "stdout", text: "one\n" },
    { by: "stderr", text: "two\n" },
    { by: "stdout", text: "three\n" },
  ]);
});

test("the tool's result has one text, and the places of both streams in it", async () => {
  const both = await bash("echo to out; echo to err >&2; exit 3");
  expect(both).toMatchObject({ stdout: "to out", stderr: "to err", exitCode: 3 });
  expect(both.text).toContain("\n[exit code 3]");
  expect(await bash("echo only out")).toMatchObject({ stdout: "only out", stderr: "", text: "only out" });
  expect(await bash("echo only err >&2")).toMatchObject({ stdout: "", stderr: "only err", text: "only err" });
  expect(await bash("true")).toMatchObject({ stdout: "", stderr: "", text: "(no output)" });
  expect(await bash("echo all 2>&1; ls /no-such 2>&1")).toMatchObject({ stderr: "", exitCode: 2 });
});

test("no character is split by the other stream, and no byte is lost", async () => {
  const halves = python(
    "import os, time",
    "for fd, part in [(1, b'\\xe2'), (2, b'\\xf0\\x9f'), (1, b'\\x82\\xac'), (2, b'\\x98\\x80\\n'), (1, b'\\n')]:",
    "    os.write(fd, part)",
    "    time.sleep(0.05)",
  );
  expect(await bash(halves)).toMatchObject({ stdout: "€", stderr: "😀" });
  const { state } = await ran({ argv: ["bash", "-c", String.raw`printf 'a\xe2\x82' >&2; printf 'b\xe9'`] });
  expect(state.outBytes).toBe(5);
});

test("lines written without pause keep their order in their stream, and none is lost", async () => {
  const lines = 15_000;
  const script = [
    "import os",
    `for at in range(${lines}): os.write(1, b'o%d\\n' % at); os.write(2, b'e%d\\n' % at)`,
  ];
  const { state, output } = await ran({ argv: ["python3", "-c", script.join("\n")] });
  expect(state).toMatchObject({ kind: "exited", exitCode: 0 });
  const numbered = (letter: string) => Array.from({ length: lines }, (_, at) => `${letter}${at}\n`).join("");
  for (const [by, letter] of [
    ["stdout", "o"],
    ["stderr", "e"],
  ]) {
    const text = output.runs.filter((run) => run.by === by).map((run) => run.text);
    expect(text.join("") === numbered(letter ?? "")).toBe(true);
  }
});

test("a child that keeps a pipe open does not keep the command; its later output is dropped", async () => {
  for (const held of [">/dev/null", "2>/dev/null"]) {
    const script = `(sleep 300; echo late; echo late >&2) ${held} & echo out; echo err >&2; exit 4`;
    const { id, state, output } = await ran({ argv: ["bash", "-c", script], timeoutMs: 60_000 });
    expect(state).toMatchObject({ kind: "exited", exitCode: 4, outBytes: 8 });
    expect(new Set(output.runs.map(({ by, text }) => `${by}: ${text}`))).toEqual(WROTE_BOTH);
    await sandbox.kill(id, 0);
  }
});

test("both streams share one limit; whose the dropped output was is not known", async () => {
  const script = "head -c 3000000 /dev/zero | tr '\\0' o & head -c 3000000 /dev/zero | tr '\\0' e >&2; wait";
  const { state, output } = await ran({ argv: ["bash", "-c", script], maxOutputBytes: 1_000 });
  expect(state).toMatchObject({ outBytes: 6_000_000, outKept: 1_000 + MIB, errBytes: 0 });
  expect(new Set(output.runs.map(({ by }) => by))).toEqual(new Set(["both", "us"]));
});

test("a command that is ended keeps what it wrote to both", async () => {
  const id = newId();
  await sandbox.start({ id, argv: ["bash", "-c", "echo out; echo err >&2; exec sleep 300"], ...APART });
  await waitUntil(async () => (await sandbox.state(id))?.outBytes === 8, "it has written both", 20_000);
  const state = await sandbox.kill(id, 0);
  expect(state).toMatchObject({ kind: "killed", by: "request" });
  const { runs } = await commandOutput(sandbox, state, 1_000);
  expect(new Set(runs.map(({ by, text }) => `${by}: ${text}`))).toEqual(WROTE_BOTH);
});

test("a command in the background has one pipe for both", async () => {
  const { text } = await callTool(sandbox, "bash", { command: "echo out; echo err >&2", background: true });
  const [, id = ""] = /id "([^"]+)"/.exec(text) ?? [];
  const state = await sandbox.wait(id);
  expect(state).not.toHaveProperty("turnsBytes");
  expect(Buffer.from(await sandbox.read(id, "out", 0, 100)).toString()).toBe("out\nerr\n");
});
