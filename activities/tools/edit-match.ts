/**
 * Finds where an edit applies. Pure. Exact matches first, then relaxations that cannot match the wrong place:
 * typographic characters, then whole lines but for trailing blanks or the same indentation shift. Line ends never count.
 * Never interior drift or anchors: other agents lost files that way (survey of coding agents opencode #24742).
 */
import { keepOwnCharacters, plainCharacters } from "./plain-characters.ts";

export interface EditRequest {
  readonly oldString: string;
  readonly newString: string;
  readonly replaceAll: boolean;
}

export type EditOutcome =
  | { readonly kind: "edited"; readonly text: string; readonly count: number; readonly how: MatchKind }
  | { readonly kind: "no-match"; readonly nearLines: readonly number[] }
  | { readonly kind: "many-matches"; readonly lines: readonly number[] };

type LineMatch = "trailing-blanks" | "indentation";
export type MatchKind = "exact" | LineMatch | "characters";

interface Span {
  readonly start: number;
  readonly end: number;
  readonly replacement: string;
}

/** Applies one edit to a text; untouched text keeps its line ends, new text gets those of the file. */
export function applyEdit(text: string, request: EditRequest): EditOutcome {
  const old = request.oldString.replaceAll("\r\n", "\n");
  const replacement = request.newString.replaceAll("\r\n", "\n");
  const found =
    findExact(text, old, replacement) ??
    findPlain(text, old, replacement, findExact) ??
    findLines(text, old, replacement) ??
    findPlain(text, old, replacement, findLines);
  if (found === undefined) return { kind: "no-match", nearLines: nearLines(text, old) };
  const { spans, how } = found;
  const mayBeMany = request.replaceAll && (how === "exact" || how === "characters");
  return spans.length > 1 && !mayBeMany ? manyMatches(text, spans) : edited(text, spans, how);
}

interface Found {
  readonly spans: readonly Span[];
  readonly how: MatchKind;
}

type Find = (text: string, old: string, replacement: string) => Found | undefined;

function findExact(text: string, old: string, replacement: string): Found | undefined {
  const spans = exactSpans(text, old, replacement);
  return spans.length > 0 ? { spans, how: "exact" } : undefined;
}

function findLines(text: string, old: string, replacement: string): Found | undefined {
  for (const how of ["trailing-blanks", "indentation"] as const) {
    const spans = lineSpans(text, old, replacement, how);
    if (spans.length > 0) return { spans, how };
  }
  return undefined;
}

/** As `find`, whatever quotes, dashes and blanks either side uses. What does not change keeps the file's own. */
function findPlain(text: string, old: string, replacement: string, find: Find): Found | undefined {
  const plainText = plainCharacters(text);
  const plainOld = plainCharacters(old);
  if (plainText === text && plainOld === old) return undefined;
  const found =
    find(plainText, plainOld, replacement) ?? find(plainText, plainOld, plainCharacters(replacement));
  if (found === undefined) return undefined;
  const spans = found.spans.map((span) => ({
    ...span,
    replacement: keepOwnCharacters(
      text.slice(span.start, span.end).replaceAll("\r\n", "\n"),
      span.replacement,
    ),
  }));
  return { spans, how: "characters" };
}

function manyMatches(text: string, spans: readonly Span[]): EditOutcome {
  return { kind: "many-matches", lines: spans.map(({ start }) => count(text.slice(0, start), "\n") + 1) };
}

function edited(text: string, spans: readonly Span[], how: MatchKind): EditOutcome {
  const isCrlf = count(text, "\r\n") * 2 > count(text, "\n");
  let result = "";
  let at = 0;
  for (const { start, end, replacement } of spans) {
    result += text.slice(at, start) + (isCrlf ? replacement.replaceAll("\n", "\r\n") : replacement);
    at = end;
  }
  return { kind: "edited", text: result + text.slice(at), count: spans.length, how };
}

/** Where `old` occurs, whatever line ends the text uses. */
function exactSpans(text: string, old: string, replacement: string): Span[] {
  const literal = old.replaceAll(/[\\^$.*+?()[\]{}|]/g, "\\$&");
  const pattern = new RegExp(literal.replaceAll("\n", "\\r?\\n"), "g");
  return Array.from(text.matchAll(pattern), ({ 0: found, index }) => ({
    start: index,
    end: index + found.length,
    replacement,
  }));
}

function lineSpans(text: string, old: string, replacement: string, how: LineMatch): Span[] {
  const withNewline = old.endsWith("\n");
  const wanted = (withNewline ? old.slice(0, -1) : old).split("\n");
  if (wanted.every((line) => line.trim() === "")) return [];
  const lines = text.split("\n");
  const starts = [0];
  for (const line of lines) starts.push((starts.at(-1) ?? 0) + line.length + 1);
  const spans: Span[] = [];
  for (let first = 0; first + wanted.length <= lines.length; first += 1) {
    const found = lines.slice(first, first + wanted.length);
    const fitted = how === "indentation" ? shiftIndent(wanted, found, replacement) : replacement;
    if (fitted === undefined || (how === "trailing-blanks" && !sameButTrailing(wanted, found))) continue;
    const next = starts[first + wanted.length] ?? 0;
    const lineEnd = found.at(-1)?.endsWith("\r") === true ? 2 : 1;
    const end = withNewline ? Math.min(next, text.length) : next - lineEnd;
    spans.push({ start: starts[first] ?? 0, end, replacement: fitted });
    first += wanted.length - 1;
  }
  return spans;
}

function sameButTrailing(wanted: readonly string[], found: readonly string[]): boolean {
  return wanted.every((line, index) => line.trimEnd() === found[index]?.trimEnd());
}

/** The replacement shifted by the indentation difference between `wanted` and `found`; undefined if they differ otherwise. */
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

/** Numbers of lines that match the first significant line of the searched text: hints for the error. */
function nearLines(text: string, old: string): number[] {
  const telling = old
    .split("\n")
    .map((line) => line.trim())
    .find((line) => line.length > 3);
  if (telling === undefined) return [];
  return text.split("\n").flatMap((line, index) => (line.trim() === telling ? [index + 1] : []));
}

function count(text: string, part: string): number {
  return text.split(part).length - 1;
}
