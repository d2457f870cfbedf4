/** Applying the chunks of one file. */
import { keepOwnCharacters, plainCharacters } from "./text-match.ts";
import type { PatchChunk, PatchLine } from "./patch-parse.ts";

export type ChunksOutcome =
  | { readonly ok: true; readonly text: string }
  | {
      readonly ok: false;
      /** The lines that were searched for. */
      readonly lines: readonly string[];
      readonly anchor: string | undefined;
      /** Line number where the lines do occur, outside the place that the patch gives; undefined: nowhere. */
      readonly elsewhere: number | undefined;
      readonly atEnd: boolean;
    };

interface Line {
  readonly text: string;
  /** `\n`, `\r\n`, `\r`, or nothing at the end of a file without a final newline. */
  readonly end: string;
}

/** Lines `start` to `start + count` are replaced by `lines`. */
interface Replacement {
  readonly start: number;
  readonly count: number;
  readonly lines: readonly Line[];
}

/**
 * The text with all chunks applied. A line matches exactly, or ignoring trailing blanks, or ignoring blanks at both
 * ends, or ignoring typographic punctuation; the strictest match wins. Each chunk is searched for below the previous
 * one; a chunk that only adds lines, without a line after @@, goes to the end of the file wherever it stands. Context
 * keeps the file's own spelling and line ends; new lines get the line end of their surroundings; a changed file ends
 * with a newline.
 */
export function applyChunks(text: string, chunks: readonly PatchChunk[]): ChunksOutcome {
  if (!/\r(?!\n)/.test(text)) return applyToLines(splitLines(text, LF_OR_CRLF), chunks);
  // A lone CR is a character within a line (progress output), or a line end in old files.
  if (!text.includes("\n")) return applyToLines(splitLines(text, ANY_END), chunks);
  const outcome = applyToLines(splitLines(text, LF_OR_CRLF), chunks);
  if (outcome.ok) return outcome;
  const split = applyToLines(splitLines(text, ANY_END), chunks);
  return split.ok ? split : outcome;
}

function applyToLines(lines: readonly Line[], chunks: readonly PatchChunk[]): ChunksOutcome {
  const usual = lines.find((line) => line.end !== "")?.end ?? "\n";
  const replacements: Replacement[] = [];
  let from = 0;
  for (const chunk of chunks) {
    for (const anchor of chunk.anchors) {
      const anchorLine = find(lines, [anchor], from, false);
      if (anchorLine === undefined) return notFound(lines, [anchor], anchor, false);
      from = anchorLine + 1;
    }
    const old = chunk.lines.filter((line) => line.kind !== "add");
    const position = placeOf(lines, chunk, old, from);
    if (position === undefined) {
      const oldLines = old.map((line) => line.text);
      return notFound(lines, oldLines, chunk.anchors.at(-1), chunk.atEnd);
    }
    const count = position.changes.filter((line) => line.kind !== "add").length;
    replacements.push({
      start: position.start,
      count,
      lines: rewritten(lines, position.start, position.changes, usual),
    });
    if (count > 0) from = position.start + count;
  }
  return { ok: true, text: joinLines(replaced(lines, replacements), usual) };
}

function notFound(
  lines: readonly Line[],
  oldLines: readonly string[],
  anchor: string | undefined,
  atEnd: boolean,
): ChunksOutcome {
  const position = find(lines, oldLines, 0, false);
  return {
    ok: false,
    lines: oldLines,
    anchor,
    elsewhere: position === undefined ? undefined : position + 1,
    atEnd,
  };
}

function replaced(lines: readonly Line[], replacements: readonly Replacement[]): Line[] {
  const result: Line[] = [];
  let copied = 0;
  // Stable sort: additions at one place keep the patch's order.
  for (const { start, count, lines: added } of replacements.toSorted((a, b) => a.start - b.start)) {
    result.push(...lines.slice(copied, start), ...added);
    copied = start + count;
  }
  return [...result, ...lines.slice(copied)];
}

/** Chunks that undo these: if they apply to a file, the patch was already applied. */
export function reversed(chunks: readonly PatchChunk[]): PatchChunk[] {
  const swap = { add: "remove", remove: "add", context: "context" } as const;
  return chunks.map((chunk) => ({
    ...chunk,
    lines: chunk.lines.map((line) => ({ ...line, kind: swap[line.kind] })),
  }));
}

function placeOf(
  lines: readonly Line[],
  chunk: PatchChunk,
  old: readonly PatchLine[],
  from: number,
): { start: number; changes: readonly PatchLine[] } | undefined {
  // Nothing to search for: new lines go after the anchor, or to the end of the file.
  if (old.length === 0) {
    return { start: chunk.anchors.length > 0 && !chunk.atEnd ? from : lines.length, changes: chunk.lines };
  }
  const start = find(
    lines,
    old.map((line) => line.text),
    from,
    chunk.atEnd,
  );
  if (start !== undefined) return { start, changes: chunk.lines };
  // A blank line at the chunk's end is often the patch's own, not the file's.
  const last = chunk.lines.at(-1);
  if (old.length > 1 && last?.kind === "context" && last.text === "") {
    return placeOf(lines, { ...chunk, lines: chunk.lines.slice(0, -1) }, old.slice(0, -1), from);
  }
  return undefined;
}

const LOOSENESS: readonly ((line: string) => string)[] = [
  (line) => line,
  (line) => line.trimEnd(),
  (line) => line.trim(),
  (line) => plainCharacters(line.trim()),
];

function find(
  lines: readonly Line[],
  oldLines: readonly string[],
  from: number,
  atEnd: boolean,
): number | undefined {
  const last = lines.length - oldLines.length;
  // `End of File` matches only there, however exact another match; blank lines after it do not count.
  const first = atEnd ? Math.max(from, last - blankTail(lines)) : from;
  for (const loosen of LOOSENESS) {
    const pattern = oldLines.map(loosen);
    const fits = (start: number): boolean =>
      pattern.every((line, index) => line === loosen(lines[start + index]?.text ?? ""));
    for (let start = first; start <= last; start += 1) if (fits(start)) return start;
  }
  return undefined;
}

function blankTail(lines: readonly Line[]): number {
  return lines.length - 1 - lines.findLastIndex((line) => line.text.trim() !== "");
}

function rewritten(
  lines: readonly Line[],
  start: number,
  changes: readonly PatchLine[],
  usual: string,
): Line[] {
  const result: Line[] = [];
  let at = start;
  let end = lines[start]?.end;
  for (const change of withOwnCharacters(lines, start, changes)) {
    const current = lines[at];
    if (change.kind === "add") {
      result.push({ text: change.text, end: end === undefined || end === "" ? usual : end });
      continue;
    }
    if (current !== undefined) end = current.end;
    if (change.kind === "context" && current !== undefined) result.push(current);
    at += 1;
  }
  return result;
}

/** What an added line has in common with the removed ones beside it keeps the file's own typographic characters. */
function withOwnCharacters(
  lines: readonly Line[],
  start: number,
  changes: readonly PatchLine[],
): readonly PatchLine[] {
  const result: PatchLine[] = [];
  let at = start;
  for (let from = 0; from < changes.length;) {
    let to = from;
    while (to < changes.length && changes[to]?.kind !== "context") to += 1;
    const block = changes.slice(from, to);
    const removed = block.filter((line) => line.kind === "remove");
    const added = block.filter((line) => line.kind === "add");
    const old = lines.slice(at, at + removed.length).map((line) => line.text);
    // Only where the patch writes the removed lines in another way than the file.
    const differs = removed.some(
      ({ text }, index) =>
        text !== old[index] &&
        plainCharacters(text.trim()) === plainCharacters(old[index]?.trim() ?? "") &&
        text.trim() !== old[index]?.trim(),
    );
    if (!differs) result.push(...block);
    else {
      const texts = keepOwnCharacters(old.join("\n"), added.map((line) => line.text).join("\n")).split("\n");
      result.push(...removed, ...added.map((line, index) => ({ ...line, text: texts[index] ?? line.text })));
    }
    at += removed.length;
    const context = changes[to];
    if (context !== undefined) {
      result.push(context);
      at += 1;
    }
    from = to + 1;
  }
  return result;
}

const LF_OR_CRLF = /([^\n]*?)(\r?\n|$)/g;
const ANY_END = /([^\r\n]*)(\r\n|\n|\r|$)/g;

function splitLines(text: string, ends: RegExp): Line[] {
  const lines: Line[] = [];
  for (const match of text.matchAll(ends)) {
    const [fullLine, line = "", end = ""] = match;
    if (fullLine !== "") lines.push({ text: line, end });
  }
  return lines;
}

function joinLines(lines: readonly Line[], usual: string): string {
  return lines.map((line) => line.text + (line.end === "" ? usual : line.end)).join("");
}
