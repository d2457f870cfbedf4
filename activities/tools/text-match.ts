/** How text that a model wrote is matched with a file's: where an edit applies, look-alike characters, stand-ins for code, and how the change looks. */
import { diffArrays, structuredPatch } from "diff";
import { cutChars } from "../text/cut.ts";
import { takeFirst } from "../text/lists.ts";

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

/**
 * Applies one edit to a text; untouched text keeps its line ends, new text gets those of the file. Exact matches first, then
 * relaxations that cannot match the wrong place: typographic characters, then whole lines but for trailing blanks or the same
 * indentation shift. Line ends never count. Never interior drift or anchors: other agents lost files that way (opencode #24742).
 */
export function applyEdit(text: string, request: EditRequest): EditOutcome {
  const old = request.oldString.replaceAll("\r\n", "\n");
  const replacement = request.newString.replaceAll("\r\n", "\n");
  const matches =
    findExact(text, old, replacement) ??
    findPlain(text, old, replacement, findExact) ??
    findLines(text, old, replacement) ??
    findPlain(text, old, replacement, findLines);
  if (matches === undefined) return { kind: "no-match", nearLines: nearLines(text, old) };
  const { spans, how } = matches;
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
  const matches =
    find(plainText, plainOld, replacement) ?? find(plainText, plainOld, plainCharacters(replacement));
  if (matches === undefined) return undefined;
  const spans = matches.spans.map((span) => ({
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
  return Array.from(text.matchAll(pattern), ({ 0: match, index }) => ({
    start: index,
    end: index + match.length,
    replacement,
  }));
}

function lineSpans(text: string, old: string, replacement: string, how: LineMatch): Span[] {
  const withNewline = old.endsWith("\n");
  const oldLines = (withNewline ? old.slice(0, -1) : old).split("\n");
  if (oldLines.every((line) => line.trim() === "")) return [];
  const lines = text.split("\n");
  const starts = [0];
  for (const line of lines) starts.push((starts.at(-1) ?? 0) + line.length + 1);
  const spans: Span[] = [];
  for (let first = 0; first + oldLines.length <= lines.length; first += 1) {
    const window = lines.slice(first, first + oldLines.length);
    const fitted = how === "indentation" ? shiftIndent(oldLines, window, replacement) : replacement;
    if (fitted === undefined || (how === "trailing-blanks" && !sameButTrailing(oldLines, window))) continue;
    const next = starts[first + oldLines.length] ?? 0;
    const lineEnd = window.at(-1)?.endsWith("\r") === true ? 2 : 1;
    const end = withNewline ? Math.min(next, text.length) : next - lineEnd;
    spans.push({ start: starts[first] ?? 0, end, replacement: fitted });
    first += oldLines.length - 1;
  }
  return spans;
}

function sameButTrailing(oldLines: readonly string[], window: readonly string[]): boolean {
  return oldLines.every((line, index) => line.trimEnd() === window[index]?.trimEnd());
}

/** The replacement shifted by the indentation difference between `wanted` and `found`; undefined if they differ otherwise. */
function shiftIndent(
  oldLines: readonly string[],
  window: readonly string[],
  replacement: string,
): string | undefined {
  const from = commonIndent(oldLines);
  const to = commonIndent(window);
  if (from === to) return undefined;
  if (!sameButTrailing(dedent(oldLines, from), dedent(window, to))) return undefined;
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

/**
 * Characters that models write another way than files have them: typographic dashes, quotes and blanks. One character
 * becomes one, so a place in the plain text is the same place in the text itself.
 */
export function plainCharacters(text: string): string {
  // oxlint-disable-next-line no-control-regex
  if (/^[\u0000-\u009f]*$/.test(text)) return text;
  return text
    .replace(/[\u2010-\u2015\u2212\uFE58\uFE63\uFF0D]/g, "-")
    .replace(/[\u2018-\u201B\u2032\u02BC]/g, "'")
    .replace(/[\u201C-\u201F\u2033]/g, '"')
    .replace(/[\u00A0\u1680\u2000-\u200A\u202F\u205F\u3000]/g, " ");
}

/**
 * A new text for a place in a file: what it has in common with the old text, but for typographic characters, keeps the file's own
 * characters.
 */
export function keepOwnCharacters(old: string, replacement: string): string {
  const plainOld = plainCharacters(old);
  if (plainOld === old && plainCharacters(replacement) === replacement) return replacement;
  const splitWords = (text: string): string[] => text.match(/[\p{L}\p{N}]+|[^\p{L}\p{N}]/gsu) ?? [];
  const changes = diffArrays(splitWords(plainOld), splitWords(plainCharacters(replacement)), {
    maxEditLength: 2_000,
  });
  if (changes === undefined) return replacement;
  let result = "";
  let atOld = 0;
  let atNew = 0;
  for (const { value, added, removed } of changes) {
    const length = value.join("").length;
    if (added === true) result += replacement.slice(atNew, atNew + length);
    else if (removed !== true) result += old.slice(atOld, atOld + length);
    if (added !== true) atOld += length;
    if (removed !== true) atNew += length;
  }
  return result;
}

const CONTEXT_LINES = 2;
const MAX_SHOWN_LINES = 60;
const MAX_LINE_CHARS = 200;

/** A short unified diff of a change with line numbers, for the model and for people. */
export function changeView(before: string, after: string): string {
  const patch = structuredPatch("a", "b", before, after, undefined, undefined, {
    context: CONTEXT_LINES,
    // A diff of a completely rewritten file is not worth the time.
    maxEditLength: 2_000,
    timeout: 1_000,
  });
  if (patch === undefined) return "(the change is too large to show)";
  const lines = patch.hunks.flatMap((hunk) => [
    `@@ -${hunk.oldStart},${hunk.oldLines} +${hunk.newStart},${hunk.newLines} @@`,
    ...hunk.lines.map((line) => (line.length > MAX_LINE_CHARS ? `${cutChars(line, MAX_LINE_CHARS)}…` : line)),
  ]);
  const { shown, more } = takeFirst(lines, MAX_SHOWN_LINES);
  return [...shown, ...(more > 0 ? [`(${more} more lines of the change)`] : [])].join("\n");
}

/**
 * Lines that stand for code that was left out ("// ... rest of the code unchanged"). Written to a file, they would delete that code,
 * so the editing tools refuse them. Gemini CLI does the same.
 *
 * Prose is not meant: only a line that has nothing but the words of such a stand-in counts, with an ellipsis, or as a comment that
 * says of the code that it is unchanged.
 */
const COMMENT = /^(?:\/\/+|#+|--+|\/\*+|<!--|;+|%+|"""|''')\s*/;
/** Within a longer comment, or an item of a list. */
const STAR = /^\*+\s+/;
const COMMENT_TAIL = /\s*(?:\*\/|-->|"""|''')?$/;
const ELLIPSIS = /^\s*[([{]?\s*(?:\.{3,}|…)|(?:\.{3,}|…)\s*[)\]}]?\s*$/;

const CODE =
  "(?:code|methods?|functions?|class(?:es)?|files?|contents?|lines?|implementations?|imports?|logic|tests?|bod(?:y|ies)|blocks?|sections?|parts?|definitions?|declarations?|fields?|propert(?:y|ies)|props|members?|variables?|constants?|styles?|rules?|cases?|routes?|handlers?|helpers?|components?|markup|scripts?|config|configuration|settings|text|module|things?|everything|else)";
const SAME =
  "(?:unchanged|unmodified|untouched|the same|same|as (?:is|it is|it was|they are|they were|before|above)|omitted|left out|elided|here|above|below|not shown|no changes?|same as (?:before|above|original)|identical)";
const WHOSE = "(?:(?:the|this|that|your|our|all|all the|of the|of) )*";
const WHICH = "(?:(?:rest|remainder|remaining|existing|other|previous|unchanged|same|original|earlier) )";
const CODES = `(?:${CODE}(?:(?:,| and|,? or) |\\s))*${CODE}`;
const STATE = `(?:,? ?\\(?(?:(?:(?:is|are|stays?|remains?|goes?|continues?|kept|keep|for brevity|unchanged|exactly|all|and|from|to) )*${SAME}(?: for brevity)?)\\)?)`;

const STAND_IN = new RegExp(
  `^(?:${WHOSE}${WHICH}${WHOSE}(?:${WHICH})?${CODES}${STATE}*|${WHOSE}${CODES}${STATE}+|(?:the )?(?:rest|remainder|remaining|unchanged|same as (?:before|above)|as before)${STATE}*)$`,
  "i",
);
/** Without an ellipsis, the line must also say that nothing changes there. */
const SAYS_SAME =
  /\b(?:unchanged|unmodified|untouched|as (?:is|before)|(?:the|stays?|remains?) same|same as (?:before|above)|omitted|left out|no changes?)\b/i;

/** The first such line of `text` that is not in `before`; undefined if there is none. */
export function omissionLine(text: string, before: string): string | undefined {
  for (const raw of text.split("\n")) {
    const line = raw.trim();
    if (line.length <= 120 && standsForCode(line) && !before.includes(line)) return line;
  }
  return undefined;
}

function standsForCode(line: string): boolean {
  const bare = line.replace(COMMENT, "").replace(STAR, "").replace(COMMENT_TAIL, "");
  const hasEllipsis = ELLIPSIS.test(bare);
  if (!hasEllipsis && !(COMMENT.test(line) && SAYS_SAME.test(bare))) return false;
  const plainText = bare
    .replace(/^[\s([{.…]+|[\s)\]}.…]+$/g, "")
    .replace(/\s*(?:\.{3,}|…)\s*/g, " ")
    .replace(/\s+/g, " ");
  return STAND_IN.test(plainText);
}
