/** Applying the chunks of one file. Pure. */
import type { PatchChunk, PatchLine } from "./patch-parse.ts";

export type ChunksOutcome =
  | { readonly ok: true; readonly text: string }
  /** `lines`: what was looked for and not found. */
  | { readonly ok: false; readonly lines: readonly string[]; readonly anchor: string | undefined };

interface Line {
  readonly text: string;
  /** `\n`, `\r\n`, or nothing at the end of a file without a final newline. */
  readonly end: string;
}

/**
 * The text with all chunks applied in order. A line matches exactly, else but for trailing blanks, else but for blanks
 * at both ends, else but for typographic punctuation; the strictest that fits wins. Context keeps the file's own
 * spelling and line ends; new lines take the line end around them; a changed file ends with a newline.
 */
export function applyChunks(text: string, chunks: readonly PatchChunk[]): ChunksOutcome {
  const lines = splitLines(text);
  const usual = usualEnd(lines);
  const result: Line[] = [];
  let copied = 0;
  let from = 0;
  for (const chunk of chunks) {
    for (const anchor of chunk.anchors) {
      const found = find(lines, [anchor], from, false);
      if (found === undefined) return { ok: false, lines: [anchor], anchor };
      from = found + 1;
    }
    const old = chunk.lines.filter((line) => line.kind !== "add");
    const place = placeOf(lines, chunk, old, from);
    if (place === undefined)
      return { ok: false, lines: old.map((line) => line.text), anchor: chunk.anchors.at(-1) };
    result.push(...lines.slice(copied, place.start));
    result.push(...rewritten(lines, place.start, place.changes, usual));
    copied = place.start + place.changes.filter((line) => line.kind !== "add").length;
    from = copied;
  }
  result.push(...lines.slice(copied));
  return { ok: true, text: joinLines(result, usual) };
}

/** Chunks that undo these: what a file looks like to them tells whether they have been applied already. */
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
  // Nothing to look for: new lines go behind the anchor, or to the end of the file.
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
  (line) => plainPunctuation(line.trim()),
];

function find(
  lines: readonly Line[],
  wanted: readonly string[],
  from: number,
  atEnd: boolean,
): number | undefined {
  const last = lines.length - wanted.length;
  for (const loosen of LOOSENESS) {
    const pattern = wanted.map(loosen);
    const fits = (start: number): boolean =>
      pattern.every((line, index) => line === loosen(lines[start + index]?.text ?? ""));
    // `End of File` says where to look first; should the file have grown since, the rest is searched too.
    if (atEnd && last >= from && fits(last)) return last;
    for (let start = from; start <= last; start += 1) if (fits(start)) return start;
  }
  return undefined;
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
  for (const change of changes) {
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

function splitLines(text: string): Line[] {
  const lines: Line[] = [];
  for (const match of text.matchAll(/([^\n]*?)(\r?\n|$)/g)) {
    const [whole, line = "", end = ""] = match;
    if (whole !== "") lines.push({ text: line, end });
  }
  return lines;
}

function joinLines(lines: readonly Line[], usual: string): string {
  return lines.map((line) => line.text + (line.end === "" ? usual : line.end)).join("");
}

function usualEnd(lines: readonly Line[]): string {
  const crlf = lines.filter((line) => line.end === "\r\n").length;
  return crlf * 2 > lines.length ? "\r\n" : "\n";
}

/** Dashes, quotes and blanks of typography as the ASCII characters that models write for them. */
function plainPunctuation(text: string): string {
  return text
    .replace(/[\u2010-\u2015\u2212]/g, "-")
    .replace(/[\u2018-\u201B]/g, "'")
    .replace(/[\u201C-\u201F]/g, '"')
    .replace(/[\u00A0\u2002-\u200A\u202F\u205F\u3000]/g, " ");
}
