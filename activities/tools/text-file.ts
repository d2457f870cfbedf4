/** Reads a whole text file from the sandbox, with what must be kept when it is written back. */
import type { FileAnswer, SandboxFiles } from "../sandbox/sandbox.ts";
import { formWords, type FoundText, readText, type TextForm, writeText } from "../text/encoding.ts";
import { ToolFailure } from "./tool.ts";
import { showName, showSize } from "./paths.ts";

/** Largest file that the editing tools load into memory. Larger text is data, better handled by a program. */
const MAX_EDIT_BYTES = 10 * 1_048_576;

/** Size of the first read: enough for most files, and little for one that turns out to be too large. */
const FIRST_BYTES = 262_144;

/** A whole file from the sandbox, text or not. */
export interface WholeFile {
  readonly bytes: Uint8Array;
  readonly hash: string;
  /** Permission bits; absent if the sandbox does not report them. */
  readonly mode?: number;
}

interface Text {
  /** Without the byte order mark; line ends unchanged. */
  readonly text: string;
  readonly form: TextForm;
}

/** Reads a file before an edit: refuses one that is too large, or whose encoding can only be guessed: writing it back would damage it. */
export async function readTextFile(files: SandboxFiles, path: string): Promise<FileAnswer<Text & WholeFile>> {
  const read = await readWholeFile(files, path);
  if (!read.ok) return read;
  const decoded = decodeText(showName(path), read.bytes);
  return decoded.ok ? { ...read, ...decoded } : decoded;
}

/** Reads a file in one piece; refuses one that is too large for that. */
export async function readWholeFile(files: SandboxFiles, path: string): Promise<FileAnswer<WholeFile>> {
  for (;;) {
    const first = await files.read(path, { offset: 0, maxBytes: FIRST_BYTES });
    if (!first.ok) return first;
    if (first.size > MAX_EDIT_BYTES) {
      const message = `${showName(path)} has ${showSize(first.size)}, more than the ${showSize(MAX_EDIT_BYTES)} this tool edits: use bash (sed, a script).`;
      return { ok: false, reason: "failed", message };
    }
    const parts = [first.bytes];
    let got = first.bytes.length;
    let changed = false;
    while (got < first.size && !changed) {
      const next = await files.read(path, { offset: got, maxBytes: MAX_EDIT_BYTES });
      if (!next.ok) return next;
      changed = next.hash !== first.hash || next.bytes.length === 0;
      parts.push(next.bytes);
      got += next.bytes.length;
    }
    if (!changed) return { ...first, bytes: Buffer.concat(parts) };
  }
}

/** @param name as shown to the model */
export function decodeText(name: string, bytes: Uint8Array): FileAnswer<Text> {
  const content = readText(bytes);
  if (content.kind === "text") return { ok: true, text: content.text, form: content.form };
  const message = `${name} is ${notUtf8(content)}; editing it here would damage it. Use bash (sed, python3${content.kind === "guessed" && content.label !== undefined ? ` with encoding="${content.label}"` : ""}).`;
  return { ok: false, reason: "failed", message };
}

/** Says what a text is, if not UTF-8: `not UTF-8 text (it looks like GBK)`. */
export function notUtf8(content: Exclude<FoundText, { kind: "text" }>): string {
  if (content.kind === "binary") return "not UTF-8 text, but binary";
  return `not UTF-8 text (${content.name === undefined ? "its encoding is not known" : `it looks like ${content.name}`})`;
}

/**
 * The bytes of a whole new text for a file that is there: with its encoding, its byte order mark and, if all its lines end so, its
 * CRLF. `remark` says what was kept that the text does not show.
 * @throws ToolFailure if the new text would turn an encoding that can only be guessed into UTF-8
 */
export function rewritten(
  name: string,
  before: FoundText,
  content: string,
): { readonly bytes: Uint8Array; readonly remark: string } {
  const plain = new TextEncoder().encode(content);
  if (before.kind === "binary") return { bytes: plain, remark: " It was a binary file." };
  if (before.kind === "guessed") {
    // ASCII is the same in all of them.
    if (before.name === undefined || plain.every((byte) => byte < 0x80)) return { bytes: plain, remark: "" };
    throw new ToolFailure(
      `${name} is ${notUtf8(before)}, and this text would make it UTF-8: nothing was written. To keep its encoding, write it with bash (python3 with encoding="${before.label}"). To make it UTF-8, first convert it: iconv -f ${before.label} -t UTF-8.`,
    );
  }
  const isCrlf = before.text.includes("\r\n") && !/(?<!\r)\n/.test(before.text) && !content.includes("\r");
  const notes = [formWords(before.form), isCrlf && content.includes("\n") ? "CRLF" : undefined];
  const kinds = notes.filter((word) => word !== undefined).join(", ");
  // Its mark is not part of the text, also where the model wrote one.
  const text = before.form.bom ? content.replace(/^\uFEFF/, "") : content;
  return {
    bytes: writeText(isCrlf ? text.replaceAll("\n", "\r\n") : text, before.form),
    remark: kinds === "" ? "" : ` Kept as it was: ${kinds}.`,
  };
}
