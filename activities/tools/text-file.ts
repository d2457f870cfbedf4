/** Reads a whole text file from the sandbox, with what must be preserved when it is written back. */
import type { FileAnswer, SandboxFiles } from "../sandbox/sandbox.ts";
import { showName, showSize } from "./paths.ts";

/** Largest file that the editing tools load into memory. Larger text is data, better handled by a program. */
const MAX_EDIT_BYTES = 10 * 1_048_576;

/** Size of the first read: enough for most files, and little for one that turns out to be too large. */
const FIRST_BYTES = 262_144;

const BOM = "\uFEFF";

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
  readonly bom: boolean;
}

/** Reads a file before an edit: refuses one that is too large or not UTF-8, because writing it back would damage it. */
export async function readTextFile(files: SandboxFiles, path: string): Promise<FileAnswer<Text & WholeFile>> {
  const read = await readWholeFile(files, path);
  if (!read.ok) return read;
  const decoded = decodeText(path, read.bytes);
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

export function decodeText(path: string, bytes: Uint8Array): FileAnswer<Text> {
  try {
    const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
    const bom = text.startsWith(BOM);
    return { ok: true, text: bom ? text.slice(1) : text, bom };
  } catch {
    const message = `${showName(path)} is not UTF-8 text; editing it here would damage it. Use bash (sed, python3).`;
    return { ok: false, reason: "failed", message };
  }
}

export function encodeText({ text, bom }: Text): Uint8Array {
  return new TextEncoder().encode(bom ? `${BOM}${text}` : text);
}
