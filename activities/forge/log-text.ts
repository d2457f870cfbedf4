/** The log of a job, wherever a forge keeps it: never with the token elsewhere, and never more of it than is read. */
import { askText, ForgeRefusal, type ForgeCall } from "./calls.ts";

/** Of a log, its beginning (which says what ran) and its end (which mostly says what failed). Source: 20 MB are kept of a log. */
const HEAD_BYTES = 4_000_000;
const TAIL_BYTES = 16_000_000;

interface LogText {
  readonly text: string;
  readonly leftOutBytes: number;
}

/** @returns undefined if there is none: never begun, gone, or not for this token. @throws ForgeRefusal if it may pass */
export async function askLog(call: ForgeCall, path: string): Promise<LogText | undefined> {
  try {
    return await askText(call, path, ends);
  } catch (error) {
    if (error instanceof ForgeRefusal && !error.isPassing) return undefined;
    throw error;
  }
}

/** The beginning and the end of what comes, each of whole lines if something is left out between them. */
async function ends(pieces: AsyncIterable<Uint8Array>): Promise<LogText> {
  const head: Uint8Array[] = [];
  let tail: Uint8Array[] = [];
  let headBytes = 0;
  let tailBytes = 0;
  let leftOutBytes = 0;
  for await (const piece of pieces) {
    const first = piece.subarray(0, Math.max(0, HEAD_BYTES - headBytes));
    head.push(first);
    headBytes += first.length;
    const rest = piece.subarray(first.length);
    tail.push(rest);
    tailBytes += rest.length;
    if (tailBytes < 2 * TAIL_BYTES) continue;
    leftOutBytes += tailBytes - TAIL_BYTES;
    tail = [Buffer.concat(tail).subarray(-TAIL_BYTES)];
    tailBytes = TAIL_BYTES;
  }
  const [start, all] = [Buffer.concat(head), Buffer.concat(tail)];
  const end = all.subarray(-TAIL_BYTES);
  leftOutBytes += all.length - end.length;
  if (leftOutBytes === 0) return { text: textOf(Buffer.concat([start, end])), leftOutBytes };
  const [kept, more] = [start.subarray(0, start.lastIndexOf("\n") + 1), end.subarray(end.indexOf("\n") + 1)];
  const left = leftOutBytes + start.length - kept.length + end.length - more.length;
  return {
    text: `${textOf(kept)}[${left} bytes of the log are left out here]\n${textOf(more)}`,
    leftOutBytes: left,
  };
}

const textOf = (bytes: Uint8Array): string => new TextDecoder().decode(bytes);
