/**
 * The Begin/End Patch grammar. Markers may be padded with blanks; a here-document or a code fence around the
 * patch is stripped, because models sometimes write one. Coding agents do the same.
 */
import { cutChars } from "../text/cut.ts";
import { ToolFailure } from "./tool.ts";

export interface PatchLine {
  readonly kind: "context" | "remove" | "add";
  readonly text: string;
}

export interface PatchChunk {
  /** Lines before the change, outermost first (`@@ class A`, `@@ method b`): each narrows the search. */
  readonly anchors: readonly string[];
  readonly lines: readonly PatchLine[];
  readonly atEnd: boolean;
}

export type PatchOperation =
  | { readonly kind: "add"; readonly path: string; readonly text: string }
  | { readonly kind: "delete"; readonly path: string }
  | {
      readonly kind: "update";
      readonly path: string;
      readonly moveTo: string | undefined;
      readonly chunks: readonly PatchChunk[];
    };

/** @throws ToolFailure that says which line is malformed */
export function parsePatch(patch: string): readonly PatchOperation[] {
  return parseBody(bodyOf(patch));
}

function bodyOf(patch: string): string[] {
  const lines = patch.replaceAll("\r\n", "\n").split("\n");
  const begin = lines.findIndex((line) => line.trim() === "*** Begin Patch");
  const end = lines.findLastIndex((line) => line.trim() === "*** End Patch");
  if (begin === -1) throw new ToolFailure("The first line of a patch must be: *** Begin Patch");
  if (end < begin) throw new ToolFailure("The last line of a patch must be: *** End Patch");
  const outside = [...lines.slice(0, begin), ...lines.slice(end + 1)].map((line) => line.trim());
  const stray = outside.find(
    (line) => line !== "" && !/^(?:```\w*|(?:apply_patch )?<<-?\s*['"]?\w+['"]?|EOF|PATCH)$/.test(line),
  );
  if (stray !== undefined) throw new ToolFailure(`This is outside the patch: ${cutChars(stray, 100)}`);
  return lines.slice(begin + 1, end);
}

function parseBody(lines: readonly string[]): PatchOperation[] {
  const operations: PatchOperation[] = [];
  let at = 0;
  while (at < lines.length) {
    const line = lines[at] ?? "";
    if (line.trim() === "") {
      at += 1;
      continue;
    }
    const header = headerOf(line.trim());
    if (header === undefined) {
      throw new ToolFailure(
        `"${cutChars(line, 100)}" is not a file header. Each file begins with *** Add File: PATH, *** Delete File: PATH or *** Update File: PATH.`,
      );
    }
    // In an update, a padded marker is a context line of the file; anywhere else it can only be a marker.
    const unpad = (text: string): string => (header.kind === "Update" ? text : text.trim());
    let end = at + 1;
    while (end < lines.length && headerOf(unpad(lines[end] ?? "")) === undefined) end += 1;
    operations.push(parseOperation(header, lines.slice(at + 1, end)));
    at = end;
  }
  if (operations.length === 0) throw new ToolFailure("The patch changes no file.");
  return operations;
}

interface Header {
  readonly kind: "Add" | "Delete" | "Update";
  readonly path: string;
}

function headerOf(line: string): Header | undefined {
  const match = /^\*\*\* (Add|Delete|Update) File: (.+)$/.exec(line.trimEnd());
  return match === null ? undefined : { kind: match[1] as Header["kind"], path: (match[2] ?? "").trim() };
}

function parseOperation({ kind, path }: Header, body: readonly string[]): PatchOperation {
  switch (kind) {
    case "Add": {
      const lines = dropBlankEnd(body);
      const wrong = lines.find((line) => !line.startsWith("+"));
      if (wrong !== undefined) {
        throw new ToolFailure(
          `Each line of the new file ${path} must begin with +; this one does not: "${cutChars(wrong, 100)}"`,
        );
      }
      return { kind: "add", path, text: lines.map((line) => `${line.slice(1)}\n`).join("") };
    }
    case "Delete":
      if (body.some((line) => line.trim() !== ""))
        throw new ToolFailure(`Nothing may follow *** Delete File: ${path}`);
      return { kind: "delete", path };
    case "Update": {
      const move = /^\s*\*\*\* Move to: (.+)$/.exec(body[0]?.trimEnd() ?? "")?.[1]?.trim();
      const chunks = parseChunks(path, move === undefined ? body : body.slice(1));
      if (move === undefined && !changesLines(chunks)) {
        throw new ToolFailure(`*** Update File: ${path} has no change: give at least one line with + or -.`);
      }
      return { kind: "update", path, moveTo: move, chunks };
    }
  }
}

function dropBlankEnd(lines: readonly string[]): readonly string[] {
  const last = lines.findLastIndex((line) => line !== "");
  return lines.slice(0, last + 1);
}

/** Whether any line is added or removed: chunks of context alone change nothing. */
export function changesLines(chunks: readonly PatchChunk[]): boolean {
  return chunks.some((chunk) => chunk.lines.some((line) => line.kind !== "context"));
}

function parseChunks(path: string, lines: readonly string[]): PatchChunk[] {
  const chunks: PatchChunk[] = [];
  let anchors: string[] = [];
  let changes: PatchLine[] = [];
  let hasBegun = false;
  const finish = (atEnd: boolean): void => {
    hasBegun = false;
    if (changes.length === 0) return;
    chunks.push({ anchors, lines: changes, atEnd });
    anchors = [];
    changes = [];
  };
  for (const line of lines) {
    // With a leading blank, it is a context line.
    if (line.trimEnd() === "*** End of File") finish(true);
    else if (/^@@(?:\s|$)/.test(line)) {
      finish(false);
      hasBegun = true;
      // The anchor's indentation distinguishes a method from a function of the same name.
      const anchor = line
        .slice(3)
        .replace(/\s@@\s*$/, "")
        .trimEnd();
      // `@@ -1,4 +1,5 @@` comes from unified diffs; its numbers are the model's guesses.
      if (anchor !== "" && !/^\s*-\d+(?:,\d+)? \+\d+(?:,\d+)?/.test(anchor)) anchors.push(anchor);
    } else if (line !== "" || hasBegun) {
      // An empty line between chunks belongs to the patch; inside a chunk it is context.
      hasBegun = true;
      changes.push(parseLine(path, line));
    }
  }
  finish(false);
  if (anchors.length > 0) throw new ToolFailure(`No change follows @@ ${anchors.at(-1)} in ${path}.`);
  return chunks;
}

function parseLine(path: string, line: string): PatchLine {
  if (line === "") return { kind: "context", text: "" };
  const text = line.slice(1);
  if (line.startsWith("+")) return { kind: "add", text };
  if (line.startsWith("-")) return { kind: "remove", text };
  if (line.startsWith(" ")) return { kind: "context", text };
  throw new ToolFailure(
    `Each line of the change of ${path} must begin with a blank (context), + or -; this one does not: "${cutChars(line, 100)}"`,
  );
}
