import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { changeRuns, cutStreams, type TextRun, textsApart } from "../../activities/text/streams.ts";
import { createSanitizer } from "../../activities/redaction/sanitizer.ts";
import { commandOutput } from "../../activities/sandbox/command-output.ts";
import type { CommandState, OutputStream } from "../../activities/sandbox/sandbox.ts";
import { defaultLimits } from "../../activities/config/run-policy.ts";
import { bashResult } from "../../activities/tools/bash-result.ts";
import { createToolRegistry } from "../../activities/tools/index.ts";
import { invokeTool } from "../../activities/tools/invoke.ts";
import { typedTool, type ToolResult } from "../../activities/tools/tool.ts";
import { truncateText } from "../../activities/text/cut.ts";
import { z } from "zod";
import { createFakeMemory } from "../support/tool-context.ts";

const SECRET = "pa55-w0rd-0f-the-test";
const { clean } = createSanitizer([SECRET]);

type Chunk = readonly ["stdout" | "stderr", string];

/** What an ended command is to the port: its output in the order of arrival, and where the streams take turns. */
function printed(chunks: readonly Chunk[], exitCode = 0) {
  const turns: Buffer[] = [];
  const parts: Buffer[] = [];
  let [last, size] = ["stdout", 0];
  for (const [by, text] of chunks) {
    if (text === "") continue;
    if (by !== last) {
      const turn = Buffer.alloc(8);
      turn.writeUIntLE(size * 2 + (by === "stderr" ? 1 : 0), 0, 6);
      turns.push(turn);
    }
    last = by;
    const part = Buffer.from(text);
    parts.push(part);
    size += part.length;
  }
  const bytes = Buffer.concat(parts);
  const turnsBytes = turns.length * 8;
  const sizes = { outBytes: size, outKept: size, errBytes: 0, errKept: 0, turnsBytes, turnsKept: turnsBytes };
  const state: CommandState = {
    id: "s1c0",
    startedAtMs: 0,
    kind: "exited",
    exitCode,
    durationMs: 1,
    ...sizes,
  };
  const kept: Record<OutputStream, Buffer> = {
    out: bytes,
    err: Buffer.alloc(0),
    turns: Buffer.concat(turns),
  };
  const read = async (_id: string, stream: OutputStream, offset: number, most: number) =>
    kept[stream].subarray(offset, offset + most);
  return { state, sandbox: { read } };
}

const limits = (maxChars: number) => ({ ...defaultLimits("bash"), maxChars });

/** The result of a call, from the bytes to the text that is stored, with the notes of the last steps. */
async function stored(chunks: readonly Chunk[], maxChars = 30_000, exitCode = 0) {
  const { state, sandbox } = printed(chunks, exitCode);
  const run = async (): Promise<ToolResult> =>
    bashResult(state, await commandOutput(sandbox, state, maxChars), {
      timeoutMs: 1_000,
      interrupted: false,
      limits: limits(maxChars),
    });
  const tool = typedTool({
    name: "bash",
    description: "For the test.",
    input: z.strictObject({}),
    readOnly: false,
    about: () => "",
    run,
  });
  const invoked = await invokeTool(
    createToolRegistry([tool]),
    { name: "bash", input: {} },
    {
      callKey: "s1c0",
      resumed: false,
      sandbox: () => Promise.reject(new Error("not needed")),
      limits: limits(maxChars),
      signal: new AbortController().signal,
      memory: createFakeMemory(),
      maskWindow: (text) => text,
      onProgress: () => {},
    },
    { clean },
  );
  const text = `${invoked.text}\n[a note of a later step]`;
  return { ...invoked, text, apart: textsApart(text, invoked.streams ?? null) };
}

const alone = (chunks: readonly Chunk[], stream: string) =>
  chunks
    .filter(([by]) => by === stream)
    .map(([, text]) => text)
    .join("");
const withoutEnd = (text: string) => text.replace(/\n$/, "");

const stream = fc.constantFrom("stdout" as const, "stderr" as const);
const line = fc.oneof(
  fc.string({ unit: "grapheme", maxLength: 30 }).map((text) => `${text}\n`),
  fc.constantFrom(
    "\u001b[31mred\u001b[0m\n",
    "é",
    "😀\n",
    `key=${SECRET}\n`,
    "\n",
    "no line end",
    "\u0007bell\n",
  ),
);
const chunks = fc.array(fc.tuple(stream, line), { maxLength: 40 });

describe("a command's streams", () => {
  it("are what each shows by itself, whatever was removed, or said not to be kept apart", async () => {
    await fc.assert(
      fc.asyncProperty(chunks, fc.constantFrom(0, 3), async (given, exitCode) => {
        const { apart, text, streams } = await stored(given, 30_000, exitCode);
        expect(text).not.toContain(SECRET);
        if (streams === undefined) return;
        expect(apart).toEqual({
          stdout: withoutEnd(clean(alone(given, "stdout"))),
          stderr: withoutEnd(clean(alone(given, "stderr"))),
        });
      }),
    );
  });

  it("are kept apart if each line is written at once", async () => {
    const whole = fc.array(
      fc.tuple(
        stream,
        line.map((text) => `${withoutEnd(text)}\n`),
      ),
      { maxLength: 40 },
    );
    await fc.assert(
      fc.asyncProperty(whole, async (given) => {
        const { apart } = await stored(given);
        expect(apart.stdout).toBe(withoutEnd(clean(alone(given, "stdout"))));
        expect(apart.stderr).toBe(withoutEnd(clean(alone(given, "stderr"))));
      }),
    );
  });

  it("have only what is theirs of a text whose middle is left out", async () => {
    const numbered = fc.array(stream, { minLength: 100, maxLength: 200 });
    await fc.assert(
      fc.asyncProperty(numbered, fc.integer({ min: 0, max: 2_000 }), async (order, maxChars) => {
        const given = order.map((by, at): Chunk => [
          by,
          `${by === "stdout" ? "o" : "e"}${at}é😀${"x".repeat(20)}\n`,
        ]);
        const { apart, truncated } = await stored(given, maxChars);
        expect(truncated).toBe(true);
        const shown = `${apart.stdout}${apart.stderr}`;
        expect(apart.stdout).toMatch(/^[o0-9é😀x\n]*$/u);
        expect(apart.stderr).toMatch(/^[e0-9é😀x\n]*$/u);
        expect(shown.length).toBeLessThanOrEqual(maxChars);
        if (maxChars > 500) expect(shown.length).toBeGreaterThan(maxChars - 300);
      }),
    );
  });

  it("are read from both ends of an output that is too long to be read as a whole", async () => {
    const lines = Array.from({ length: 40_000 }, (_, at): Chunk => {
      const by = at % 3 === 0 ? "stderr" : "stdout";
      return [by, `${by === "stdout" ? "o" : "e"}${at} ${"€".repeat(10)}\n`];
    });
    const { apart, truncated } = await stored(lines, 2_000);
    expect(truncated).toBe(true);
    expect(apart.stdout).toMatch(/^o1 /);
    expect(apart.stderr).toMatch(/^e0 /);
    expect(apart.stdout).toMatch(/\no39998 €+$/);
    expect(apart.stderr).toMatch(/\ne39999 €+$/);
    expect(apart.stdout).not.toMatch(/[e[]/);
    expect(apart.stderr).not.toMatch(/[o[]/);
  });

  it("are not kept apart if a secret crosses between them, or is whole in one of them only", async () => {
    const [first, second] = [SECRET.slice(0, 9), SECRET.slice(9)];
    const crossing = await stored([
      ["stdout", `a ${first}`],
      ["stderr", `${second} b\n`],
    ]);
    expect(crossing.text).toBe("a [masked] b\n[a note of a later step]");
    expect(crossing.apart).toEqual({ stdout: null, stderr: null });
    const parted = await stored([
      ["stderr", first],
      ["stdout", "between"],
      ["stderr", second],
    ]);
    expect(parted.apart).toEqual({ stdout: null, stderr: null });
  });

  it("are not kept apart in an output whose turns are not known, such as an older sandbox's", async () => {
    const { state, sandbox } = printed([
      ["stdout", "out\n"],
      ["stderr", "err\n"],
    ]);
    const { turnsBytes: _bytes, turnsKept: _kept, ...older } = state;
    for (const known of [older as CommandState, { ...state, turnsKept: 0 }, { ...state, outBytes: 99 }]) {
      const { text, runs } = await commandOutput(sandbox, known, 1_000);
      expect(text).toMatch(/^out\nerr\n/);
      expect(changeRuns({ text, runs }, clean).streams).toBeUndefined();
    }
    expect(textsApart("out\nerr", null)).toEqual({ stdout: null, stderr: null });
  });

  it("are empty where a command wrote nothing, and have none of our notes", async () => {
    expect((await stored([])).apart).toEqual({ stdout: "", stderr: "" });
    expect((await stored([["stderr", "\n"]], 30_000, 3)).apart).toEqual({ stdout: "", stderr: "" });
    const { text, apart } = await stored([["stderr", "no such file\n"]], 30_000, 2);
    expect(text).toBe("no such file\n[exit code 2]\n[a note of a later step]");
    expect(apart).toEqual({ stdout: "", stderr: "no such file" });
  });

  it("keep their places through a cut, run by run", () => {
    const runs = fc.array(
      fc.record({ by: fc.constantFrom("stdout", "stderr", "us"), text: fc.string({ maxLength: 50 }) }),
    );
    fc.assert(
      fc.property(runs, fc.integer({ min: 0, max: 900 }), (given, maxChars) => {
        const text = given.map((run) => run.text).join("");
        const { streams } = changeRuns({ text, runs: given as TextRun[] }, (same) => same);
        if (streams === undefined) throw new Error("Nothing was changed.");
        const cut = truncateText(text, { maxChars });
        const after = cut.truncated ? cutStreams(streams, cut.kept) : streams;
        const spans = [...after.stdout, ...after.stderr].toSorted(([one], [other]) => one - other);
        spans.forEach(([from, to], index) => {
          expect(from).toBeLessThan(to);
          expect(from).toBeGreaterThanOrEqual(spans[index - 1]?.[1] ?? 0);
          expect(to).toBeLessThanOrEqual(cut.text.length);
        });
      }),
    );
  });
});
