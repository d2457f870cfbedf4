/** Output of a supervised command as text: beginning and end for the model, all of it in pieces for the store. */
import type { CommandState, OutputStream, Sandbox } from "./sandbox.ts";
import { terminalText } from "./terminal-text.ts";

/** Bytes a `read` may ask for. Source: the port. */
const READ_BYTES = 1_048_576;
const PIECE_BYTES = 262_144;
/** Usually cut away with the middle; stays if cleaning (of colours, progress bars) shortens the ends below the limit. */
const SEAM = "\n[the middle of the output is left out here]\n";

export interface CommandOutput {
  readonly text: string;
  /** Set if `text` is only the two ends of the output. */
  readonly whole?: { readonly chars: number; readonly pieces: () => AsyncIterable<string> };
}

/**
 * What a terminal shows of the output; for a long output its beginning and end, each longer than `maxChars`, so that cutting to `maxChars`
 * afterwards (once the sanitizer has masked secrets) removes the seam. Bytes that are not UTF-8 become U+FFFD.
 */
export async function outputOf(
  sandbox: Sandbox,
  state: CommandState,
  maxChars: number,
): Promise<CommandOutput> {
  const kept = state.outKept;
  // A character takes at most 4 bytes of UTF-8 for 2 UTF-16 units and 3 for 1.
  const endBytes = Math.min(READ_BYTES, maxChars * 3 + 4_096);
  if (kept <= endBytes * 2) {
    const text = terminalText(
      new TextDecoder().decode(await readBytes(sandbox, { id: state.id, from: 0, length: kept })),
    );
    return { text: state.outBytes > kept ? `${text}\n${lossNote(state)}` : text };
  }
  const head = await readBytes(sandbox, { id: state.id, from: 0, length: endBytes });
  const tail = await readBytes(sandbox, { id: state.id, from: kept - endBytes, length: endBytes });
  const note = state.outBytes > kept ? `\n${lossNote(state)}` : "";
  const ends = [new TextDecoder().decode(head, { stream: true }), decodeTail(tail)];
  return {
    text: `${ends.map(terminalText).join(SEAM)}${note}`,
    whole: { chars: kept, pieces: () => outputPieces(sandbox, state.id, kept) },
  };
}

/** The first `length` bytes of a command's output, as pieces of text; no character is split over two pieces. */
async function* outputPieces(sandbox: Reading, id: string, length: number): AsyncIterable<string> {
  const decoder = new TextDecoder();
  for await (const bytes of outputBytes(sandbox, { id, from: 0, length }, PIECE_BYTES)) {
    const text = decoder.decode(bytes, { stream: true });
    if (text !== "") yield text;
  }
  const rest = decoder.decode();
  if (rest !== "") yield rest;
}

type Reading = Pick<Sandbox, "read">;

interface Range {
  readonly id: string;
  readonly stream?: OutputStream;
  readonly from: number;
  readonly length: number;
}

/** Bytes of a command's output from an offset on, as many as there are up to `length`. */
export async function readBytes(sandbox: Reading, range: Range): Promise<Buffer> {
  const parts: Uint8Array[] = [];
  for await (const bytes of outputBytes(sandbox, range)) parts.push(bytes);
  return Buffer.concat(parts);
}

/** As `readBytes`, piece by piece. */
export async function* outputBytes(
  sandbox: Reading,
  { id, stream = "out", from, length }: Range,
  pieceBytes = READ_BYTES,
): AsyncGenerator<Uint8Array> {
  for (let got = 0; got < length;) {
    const bytes = await sandbox.read(id, stream, from + got, Math.min(pieceBytes, length - got));
    if (bytes.length === 0) return;
    got += bytes.length;
    yield bytes;
  }
}

// The tail may begin inside a character: its continuation bytes belong to what was left out.
function decodeTail(bytes: Uint8Array): string {
  let start = 0;
  while (start < 3 && start < bytes.length && ((bytes[start] ?? 0) & 0b1100_0000) === 0b1000_0000) start += 1;
  return new TextDecoder().decode(bytes.subarray(start));
}

function lossNote(state: CommandState): string {
  const lost = state.outBytes - state.outKept;
  return `[${lost.toLocaleString("en-US")} bytes from the middle of the output were not kept: send long output to a file]`;
}
