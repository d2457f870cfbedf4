/**
 * Bodies of others' answers, each read only up to a limit: without it, a server or whoever answers in its place fills the memory of
 * everything in the process, and a small compressed body may be a large one. Nothing else reads a body whole.
 */
import { pipeline, Readable, type Transform } from "node:stream";
import { EventPace } from "./event-pace.ts";
import { createBrotliDecompress, createGunzip, createInflate, createZstdDecompress } from "node:zlib";

/** Of an answer, or of one event of a stream, without compression. Chosen; what is used of them is cut far below it. */
const MAX_ANSWER_BYTES = 32 << 20;
/** Of an answer that reports an error: only its first words are shown. */
const MAX_ERROR_BYTES = 1 << 20;
/** Lists and objects in one another. Chosen; no API comes near it, and what walks a value may be recursive. */
export const MAX_NESTING = 200;

const LINE_FEED = 0x0a;
const CARRIAGE_RETURN = 0x0d;
const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const OPENING: ReadonlySet<number> = new Set([0x5b, 0x7b]);
const CLOSING: ReadonlySet<number> = new Set([0x5d, 0x7d]);

/** An answer was larger or deeper than any that is read. */
class BodyTooLarge extends Error {
  override readonly name = "BodyTooLarge";
}

export interface Bounds {
  /** In bytes; of an event stream, of each event. */
  readonly maxBytes?: number | undefined;
  /** Of an event stream as a whole; none if it may last for ever. */
  readonly maxStreamBytes?: number | undefined;
  /** Of an event stream, in the long run; default: that of a server's notices. */
  readonly eventsPerSecond?: number | undefined;
}

/** What limits depend on. */
interface Head {
  readonly status: number;
  readonly headers: Headers;
}

/** @returns the same response; reading its body fails with BodyTooLarge at the limit. An error's body ends there. */
export function boundedResponse(response: Response, bounds: Bounds = {}): Response {
  if (response.body === null) return response;
  const body = ReadableStream.from(upTo(response.body, response, bounds));
  const bounded = new Response(body as ReadableStream<Uint8Array<ArrayBuffer>>, response);
  // A made response has no address of its own, which the MCP library reads.
  Object.defineProperty(bounded, "url", { value: response.url });
  return bounded;
}

/** The same for a body of Node, which is also decompressed, if its server compresses although it was asked not to. */
export function boundedBody(body: Readable, head: Head, bounds: Bounds = {}): Readable {
  const decoded = decompressed(body, head.headers.get("content-encoding"));
  return Readable.from(upTo(decoded, head, bounds), { objectMode: false });
}

async function* upTo(
  pieces: AsyncIterable<Uint8Array>,
  { status, headers }: Head,
  { maxBytes = MAX_ANSWER_BYTES, maxStreamBytes = Infinity, eventsPerSecond }: Bounds,
): AsyncGenerator<Uint8Array> {
  if (status >= 400) return yield* firstBytes(pieces, Math.min(maxBytes, MAX_ERROR_BYTES));
  const isStream = headers.get("content-type")?.startsWith("text/event-stream") === true;
  const measure = isStream ? measureEvents() : measureAll();
  const pace = new EventPace(eventsPerSecond);
  let bytes = 0;
  for await (const piece of pieces) {
    bytes += piece.length;
    const { longest, ended } = measure(piece);
    if (longest > maxBytes) throw tooLarge(maxBytes);
    if (isStream && bytes > maxStreamBytes) throw tooLarge(maxStreamBytes);
    yield piece;
    await pace.after(ended);
  }
}

const tooLarge = (bytes: number) =>
  new BodyTooLarge(`its answer has more than ${Math.ceil(bytes / 2 ** 20)} MiB, so the rest was not read`);

async function* firstBytes(pieces: AsyncIterable<Uint8Array>, max: number): AsyncGenerator<Uint8Array> {
  let left = max;
  for await (const piece of pieces) {
    yield piece.subarray(0, left);
    left -= piece.length;
    if (left <= 0) return;
  }
}

/** The length of the longest event so far in a piece, or of the whole so far; and how many events end in it. */
type Measure = (piece: Uint8Array) => { readonly longest: number; readonly ended: number };

function measureAll(): Measure {
  let bytes = 0;
  return (piece) => ({ longest: (bytes += piece.length), ended: 0 });
}

/** An empty line ends an event. */
function measureEvents(): Measure {
  let bytes = 0;
  let isLineEmpty = false;
  return (piece) => {
    let from = 0;
    let most = 0;
    let ended = 0;
    for (let at = piece.indexOf(LINE_FEED); at !== -1; at = piece.indexOf(LINE_FEED, from)) {
      const length = at - from;
      const isBlank = length === 0 || (length === 1 && piece[from] === CARRIAGE_RETURN);
      const isEnd = isBlank && isLineEmpty;
      if (isEnd) ended += 1;
      bytes = isEnd ? 0 : bytes + length + 1;
      most = Math.max(most, bytes);
      isLineEmpty = true;
      from = at + 1;
    }
    const rest = piece.length - from;
    bytes += rest;
    if (rest > 0) isLineEmpty = piece[piece.length - 1] === CARRIAGE_RETURN && rest === 1 && isLineEmpty;
    return { longest: Math.max(most, bytes), ended };
  };
}

/** @returns the text of a body, well-formed. @throws BodyTooLarge; of an error's body the beginning is returned */
export async function bodyText(response: Response, bounds?: Bounds): Promise<string> {
  const { body } = response;
  if (body === null) return "";
  const decoder = new TextDecoder();
  let text = "";
  for await (const piece of upTo(body, response, bounds ?? {}))
    text += decoder.decode(piece, { stream: true });
  return text + decoder.decode();
}

/** @throws BodyTooLarge, also if it is nested deeper than any answer; SyntaxError if it is not JSON */
export async function readJson(response: Response, bounds?: Bounds): Promise<unknown> {
  return readJsonText(await bodyText(response, bounds));
}

/** @throws BodyTooLarge if it is nested deeper than any answer; SyntaxError if it is not JSON */
export function readJsonText(text: string): unknown {
  if (new Nesting().isTooDeep(text))
    throw new BodyTooLarge(`its answer has more than ${MAX_NESTING} lists and objects in one another`);
  return JSON.parse(text);
}

/** How deep a JSON text is, in one pass, before anything is made of it. */
export class Nesting {
  #depth = 0;
  #isText = false;
  #isEscaped = false;

  /** @param piece what follows of the text */
  isTooDeep(piece: string): boolean {
    for (let at = 0; at < piece.length; at += 1) {
      const char = piece.charCodeAt(at);
      if (this.#isEscaped) this.#isEscaped = false;
      else if (char === BACKSLASH) this.#isEscaped = true;
      else if (char === QUOTE) this.#isText = !this.#isText;
      else if (this.#isText) continue;
      else if (OPENING.has(char) && (this.#depth += 1) > MAX_NESTING) return true;
      else if (CLOSING.has(char)) this.#depth -= 1;
    }
    return false;
  }
}

const DECODERS = new Map<string, () => Transform>([
  ["gzip", createGunzip],
  ["x-gzip", createGunzip],
  ["deflate", createInflate],
  ["br", createBrotliDecompress],
  ["zstd", createZstdDecompress],
]);

/** @param encodings the last one is undone first, and from an unknown one on nothing is */
function decompressed(body: Readable, encodings: string | null): Readable {
  let decoded = body;
  for (const name of (encodings ?? "").split(",").toReversed()) {
    const decoder = DECODERS.get(name.trim().toLowerCase())?.();
    if (decoder === undefined) return decoded;
    // Whoever reads the result gets the error.
    decoded = pipeline(decoded, decoder, () => undefined);
  }
  return decoded;
}
