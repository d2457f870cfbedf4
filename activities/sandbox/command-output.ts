/** Output of a supervised command as text: beginning and end for the model, all of it in pieces for the store. */
import { joinRuns, type TextRun, type Stream } from "../text/streams.ts";
import type { CommandState, OutputStream, Sandbox } from "./sandbox.ts";
import { terminalText } from "./terminal-text.ts";

/** Bytes a `read` may ask for. Source: the port. */
const READ_BYTES = 1_048_576;
const PIECE_BYTES = 262_144;
/** Usually cut away with the middle; stays if cleaning (of colours, progress bars) shortens the ends below the limit. */
const SEAM = "\n[the middle of the output is left out here]\n";

type Reading = Pick<Sandbox, "read">;

/** More runs than this are one. Chosen: the ends of an output that is cut have 4,000 lines. */
const MAX_RUNS = 20_000;
/** Bytes of one turn, and of them those that can be used: see agent/output.py. */
const TURN_BYTES = 8;
const NUMBER_BYTES = 6;

export interface CommandOutput {
  readonly text: string;
  /** The same by who wrote it; `both` if it is not known. */
  readonly runs: readonly TextRun[];
  /** Set if `text` is only the two ends of the output. */
  readonly whole?: { readonly chars: number; readonly pieces: () => AsyncIterable<string> };
}

/**
 * What a terminal shows of the output; for a long output its beginning and end, each longer than `maxChars`, so that cutting to `maxChars`
 * afterwards (once the sanitizer has masked secrets) removes the seam. Bytes that are not UTF-8 become U+FFFD.
 */
export async function commandOutput(
  sandbox: Reading,
  state: CommandState,
  maxChars: number,
): Promise<CommandOutput> {
  const { id, outKept: keptBytes } = state;
  const turns = await turnsOf(sandbox, state);
  const loss = state.outBytes > keptBytes ? [note(`\n${lossNote(state)}`)] : [];
  // A character takes at most 4 bytes of UTF-8 for 2 UTF-16 units and 3 for 1.
  const endBytes = Math.min(READ_BYTES, maxChars * 3 + 4_096);
  if (keptBytes <= endBytes * 2) {
    const bytes = await readBytes(sandbox, { id, from: 0, length: keptBytes });
    return inRuns([...runsOf(bytes, 0, turns), ...loss]);
  }
  const head = await readBytes(sandbox, { id, from: 0, length: endBytes });
  const tail = fromWholeCharacter(
    await readBytes(sandbox, { id, from: keptBytes - endBytes, length: endBytes }),
  );
  const ends = [
    runsOf(head, 0, turns, { isCut: true }),
    runsOf(tail, keptBytes - tail.length, turns),
  ] as const;
  return {
    ...inRuns([...ends[0], note(SEAM), ...ends[1], ...loss]),
    whole: { chars: keptBytes, pieces: () => outputPieces(sandbox, id, keptBytes) },
  };
}

const note = (text: string): TextRun => ({ by: "us", text });

function inRuns(runs: readonly TextRun[]): CommandOutput {
  const text = joinRuns(runs);
  return { text, runs: runs.length > MAX_RUNS ? [{ by: "both", text }] : runs };
}

/** Where in the output a stream begins that is not the one before; the first is standard output. */
interface Turn {
  readonly at: number;
  readonly by: Stream;
}

/** @returns undefined if it is not known which bytes are of which stream: for some or all of them */
async function turnsOf(sandbox: Reading, state: CommandState): Promise<Turn[] | undefined> {
  const { id, outBytes, outKept, turnsBytes, turnsKept } = state;
  if (turnsBytes === undefined || turnsBytes !== turnsKept || outBytes !== outKept) return undefined;
  const bytes = await readBytes(sandbox, { id, stream: "turns", from: 0, length: turnsBytes });
  return Array.from({ length: bytes.length / TURN_BYTES }, (_, index) => {
    const number = bytes.readUIntLE(index * TURN_BYTES, NUMBER_BYTES);
    return { at: Math.floor(number / 2), by: number % 2 === 1 ? "stderr" : "stdout" };
  });
}

/** What a terminal shows of each run. @param isCut the bytes may end inside a character, which is left out */
function runsOf(
  bytes: Uint8Array,
  from: number,
  turns: readonly Turn[] | undefined,
  { isCut = false } = {},
): TextRun[] {
  const inside = (turns ?? []).filter(({ at }) => at > from && at < from + bytes.length);
  const first: TextRun["by"] =
    turns === undefined ? "both" : (turns.findLast(({ at }) => at <= from)?.by ?? "stdout");
  return [{ at: from, by: first }, ...inside].map(({ at, by }, index) => {
    const next = inside[index];
    const decoder = new TextDecoder("utf-8", { ignoreBOM: at > 0 });
    const text = decoder.decode(bytes.subarray(at - from, next === undefined ? undefined : next.at - from), {
      stream: isCut && next === undefined,
    });
    return { by, text: terminalText(text) };
  });
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

// Bytes that continue a character whose beginning was left out belong to what was left out.
function fromWholeCharacter(bytes: Uint8Array): Uint8Array {
  let start = 0;
  while (start < 3 && start < bytes.length && ((bytes[start] ?? 0) & 0b1100_0000) === 0b1000_0000) start += 1;
  return bytes.subarray(start);
}

function lossNote(state: CommandState): string {
  const lostBytes = state.outBytes - state.outKept;
  return `[${lostBytes.toLocaleString("en-US")} bytes from the middle of the output were not kept: send long output to a file]`;
}
