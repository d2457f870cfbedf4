/** Of a failed command's output, the part that says why; and what makes the same failure recognisable. */
import { createHash } from "node:crypto";
import { cutChars, cutTail } from "../text/cut.ts";

/** Marks of failures, the plainest first: of test runners, compilers, languages. */
const MARKS: readonly RegExp[] = [
  /^##\[error\](?!Process completed with exit code)/,
  /^\s*(?:FAIL\b|✗|✖|×|not ok\b|--- FAIL|FAILED\b|E {2,}\S)/,
  /\b(?:error|Error|ERROR)\b[:[(]|\bpanic:|^panicked at|^Traceback\b/,
  /\b(?:error|failed|failure|cannot|fatal)\b/i,
];
const [BEFORE_LINES, AFTER_LINES, END_LINES, BLIND_LINES] = [30, 40, 40, 60];
/** Chosen: some 2,500 tokens, as much as a long result of a tool. */
const MAX_CHARS = 8_000;
const MAX_LINE_CHARS = 1_000;

export interface FailureExcerpt {
  /** The region around the first mark of a failure, and the end; or the end alone. */
  readonly text: string;
  /** The first line with a mark; undefined if there is none, which the text says. */
  readonly firstError: string | undefined;
}

/** @param output as a terminal shows it, masked */
export function failureExcerpt(output: string): FailureExcerpt {
  const lines = folded(output.split("\n").map((line) => cutChars(line.trimEnd(), MAX_LINE_CHARS)));
  while (lines.at(-1) === "") lines.pop();
  if (lines.length === 0) return { text: "It printed nothing.", firstError: undefined };
  const at = MARKS.map((mark) => lines.findIndex((line) => mark.test(line))).find((index) => index >= 0);
  if (at === undefined) {
    const end = lines.slice(-BLIND_LINES).join("\n");
    return {
      text: cutTail(`[No line says why; this is the end.]\n${end}`, MAX_CHARS),
      firstError: undefined,
    };
  }
  const [from, to] = [Math.max(0, at - BEFORE_LINES), at + AFTER_LINES];
  const region = lines.slice(from, to);
  const end = lines.slice(Math.max(to, lines.length - END_LINES));
  const gap = lines.length - end.length - to;
  const parts = [
    ...(from > 0 ? [`[${from} lines before]`] : []),
    ...region,
    ...(gap > 0 ? [`[${gap} lines left out]`] : []),
    ...end,
  ];
  const text = parts.join("\n");
  return { text: text.length > MAX_CHARS ? aroundMark(region, at - from, end) : text, firstError: lines[at] };
}

/** For long lines: what fits from the mark's line on, and of the end. */
function aroundMark(region: readonly string[], at: number, end: readonly string[]): string {
  const half = MAX_CHARS / 2;
  return `${cutChars(region.slice(at).join("\n"), half)}\n[…]\n${cutTail(end.join("\n"), half)}`;
}

/** Equal lines that follow each other become one. */
function folded(lines: readonly string[]): string[] {
  const out: string[] = [];
  let times = 1;
  for (const [index, line] of lines.entries()) {
    if (line !== "" && line === lines[index + 1]) {
      times += 1;
      continue;
    }
    out.push(times > 1 ? `${line} [${times} times]` : line);
    times = 1;
  }
  return out;
}

/** The same for the same failure: without what differs from run to run (times, numbers, addresses). */
export function failureSignature(command: string, how: string, firstError: string | undefined): string {
  const plain = (text: string) =>
    text
      .replaceAll(/0x[0-9a-f]+|\b[0-9a-f]{7,}\b|\d+(?:[.,]\d+)*/gi, "#")
      .replaceAll(/\s+/g, " ")
      .trim();
  const parts = [command, how, firstError === undefined ? "" : plain(firstError)];
  return createHash("sha256").update(JSON.stringify(parts)).digest("hex").slice(0, 32);
}
