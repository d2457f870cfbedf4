/**
 * Where an edit applies. Pure. Exact first, then relaxations that cannot hit the wrong place: trailing blanks, line
 * ends, one and the same indentation shift over all lines. Never interior drift or anchors: that is how other agents
 * lost files (survey of coding agents opencode #24742).
 */

export interface EditRequest {
  readonly oldString: string;
  readonly newString: string;
  readonly replaceAll: boolean;
}

export type EditOutcome =
  | { readonly kind: "edited"; readonly text: string; readonly count: number; readonly how: MatchKind }
  | { readonly kind: "no-match"; readonly nearLines: readonly number[] }
  | { readonly kind: "many-matches"; readonly lines: readonly number[] };

type MatchKind = "exact" | "trailing-blanks" | "indentation";

interface Span {
  readonly start: number;
  readonly end: number;
  readonly replacement: string;
}

/** Applies one edit to a text; untouched text keeps its line ends, new text takes those of the file. */
export function applyEdit(text: string, request: EditRequest): EditOutcome {
  const view = lfView(text);
  const old = toLf(request.oldString);
  const replacement = toLf(request.newString);
  const exact = exactSpans(view.text, old, replacement);
  if (exact.length > 1 && !request.replaceAll) {
    return { kind: "many-matches", lines: exact.map((span) => lineOf(view.text, span.start)) };
  }
  if (exact.length > 0) return edited(text, view, exact, "exact");
  for (const how of ["trailing-blanks", "indentation"] as const) {
    const spans = lineSpans(view.text, old, replacement, how);
    if (spans.length === 1) return edited(text, view, spans, how);
    if (spans.length > 1) {
      return { kind: "many-matches", lines: spans.map((span) => lineOf(view.text, span.start)) };
    }
  }
  return { kind: "no-match", nearLines: nearLines(view.text, old) };
}

function edited(text: string, view: LfView, spans: readonly Span[], how: MatchKind): EditOutcome {
  let result = "";
  let at = 0;
  for (const span of spans) {
    const crlf = view.carriageReturns.length * 2 > countNewlines(view.text);
    result += text.slice(at, view.toOriginal(span.start));
    result += crlf ? span.replacement.replaceAll("\n", "\r\n") : span.replacement;
    at = view.toOriginal(span.end);
  }
  return { kind: "edited", text: result + text.slice(at), count: spans.length, how };
}

/** The text with LF line ends, and the way back from its offsets to those of the original. */
interface LfView {
  readonly text: string;
  /** Offsets in `text` of the line feeds that had a carriage return. */
  readonly carriageReturns: readonly number[];
  readonly toOriginal: (offset: number) => number;
}

function lfView(text: string): LfView {
  const carriageReturns: number[] = [];
  for (let at = text.indexOf("\r\n"); at !== -1; at = text.indexOf("\r\n", at + 2)) {
    carriageReturns.push(at - carriageReturns.length);
  }
  const toOriginal = (offset: number): number => {
    let low = 0;
    let high = carriageReturns.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((carriageReturns[middle] ?? 0) < offset) low = middle + 1;
      else high = middle;
    }
    return offset + low;
  };
  return { text: toLf(text), carriageReturns, toOriginal };
}

function toLf(text: string): string {
  return text.replaceAll("\r\n", "\n");
}

function exactSpans(text: string, old: string, replacement: string): Span[] {
  const spans: Span[] = [];
  for (let at = text.indexOf(old); at !== -1; at = text.indexOf(old, at + old.length)) {
    spans.push({ start: at, end: at + old.length, replacement });
  }
  return spans;
}

function lineSpans(
  text: string,
  old: string,
  replacement: string,
  how: "trailing-blanks" | "indentation",
): Span[] {
  const withNewline = old.endsWith("\n");
  const wanted = (withNewline ? old.slice(0, -1) : old).split("\n");
  if (wanted.every((line) => line.trim() === "")) return [];
  const lines = text.split("\n");
  const starts: number[] = [];
  for (let index = 0, at = 0; index < lines.length; index += 1) {
    starts.push(at);
    at += (lines[index]?.length ?? 0) + 1;
  }
  const spans: Span[] = [];
  for (let first = 0; first + wanted.length <= lines.length; first += 1) {
    const found = lines.slice(first, first + wanted.length);
    const fitted = how === "indentation" ? shiftIndent(wanted, found, replacement) : replacement;
    if (fitted === undefined || (how === "trailing-blanks" && !sameButTrailing(wanted, found))) continue;
    const last = first + wanted.length - 1;
    const end = (starts[last] ?? 0) + (lines[last]?.length ?? 0);
    spans.push({
      start: starts[first] ?? 0,
      end: withNewline ? Math.min(end + 1, text.length) : end,
      replacement: fitted,
    });
    first = last;
  }
  return spans;
}

function sameButTrailing(wanted: readonly string[], found: readonly string[]): boolean {
  return wanted.every((line, index) => line.trimEnd() === found[index]?.trimEnd());
}

/** The replacement moved by the shift between `wanted` and `found`; undefined where they differ otherwise. */
function shiftIndent(
  wanted: readonly string[],
  found: readonly string[],
  replacement: string,
): string | undefined {
  const from = commonIndent(wanted);
  const to = commonIndent(found);
  if (from === to) return undefined;
  if (!sameButTrailing(dedent(wanted, from), dedent(found, to))) return undefined;
  const lines = replacement.split("\n");
  if (lines.some((line) => line.trim() !== "" && !line.startsWith(from))) return undefined;
  return lines.map((line) => (line.trim() === "" ? line : to + line.slice(from.length))).join("\n");
}

function commonIndent(lines: readonly string[]): string {
  let common: string | undefined;
  for (const line of lines) {
    if (line.trim() === "") continue;
    const indent = /^[ \t]*/.exec(line)?.[0] ?? "";
    common = common === undefined ? indent : commonPrefix(common, indent);
  }
  return common ?? "";
}

function commonPrefix(left: string, right: string): string {
  let length = 0;
  while (length < left.length && left[length] === right[length]) length += 1;
  return left.slice(0, length);
}

function dedent(lines: readonly string[], indent: string): string[] {
  return lines.map((line) => (line.trim() === "" ? "" : line.slice(indent.length)));
}

/** Lines of the text that read like the first telling line of what was looked for: hints for the error. */
function nearLines(text: string, old: string): number[] {
  const telling = old
    .split("\n")
    .map((line) => line.trim())
    .find((line) => line.length > 3);
  if (telling === undefined) return [];
  const near: number[] = [];
  for (const [index, line] of text.split("\n").entries()) {
    if (line.trim() === telling) near.push(index + 1);
  }
  return near;
}

function lineOf(text: string, offset: number): number {
  return countNewlines(text.slice(0, offset)) + 1;
}

function countNewlines(text: string): number {
  let count = 0;
  for (let at = text.indexOf("\n"); at !== -1; at = text.indexOf("\n", at + 1)) count += 1;
  return count;
}
