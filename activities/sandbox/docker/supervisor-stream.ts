/**
 * One open stream to a sandbox's supervisor: numbered requests, several in progress at once, one JSON text per line. Memory is
 * bounded by what was requested: besides answers the supervisor sends only progress, and only while its buffer is empty.
 */
import type { Duplex } from "node:stream";
import { cutTail } from "../../text/cut.ts";

/** The stream ended; requests in progress may or may not have been carried out. */
export class StreamEnded extends Error {
  override readonly name = "StreamEnded";
}

export type SupervisorAnswer = Readonly<Record<string, unknown>>;

export interface RequestOptions {
  readonly signal?: AbortSignal | undefined;
  readonly onBytes?: ((bytes: number) => void) | undefined;
}

interface Pending {
  readonly resolve: (answer: SupervisorAnswer) => void;
  readonly reject: (error: unknown) => void;
  readonly onBytes: ((bytes: number) => void) | undefined;
}

/** How often the supervisor is pinged while a request is in progress; two missed answers end the stream. */
const PING_MS = 15_000;
/** An answer. Chosen: the longest that our own supervisor sends lists 200,000 files. */
const MAX_ANSWER_BYTES = 128 << 20;
/** What may come while nothing was asked: rests of progress. */
const MAX_IDLE_BYTES = 1 << 20;
/** Pieces of a line are joined when there are this many: each takes memory of its own. */
const MAX_PIECES = 1_024;
const MAX_TROUBLE_CHARS = 500;
const HEAD_BYTES = 8;
const STDERR = 2;

export class SupervisorStream {
  readonly #duplex: Duplex;
  readonly #pending = new Map<number, Pending>();
  readonly #pinging: NodeJS.Timeout;
  #ended = false;
  #lastNumber = 0;
  #heardAtMs = performance.now();
  /** The end of what the relay wrote to standard error. */
  #trouble = "";

  /** @param duplex Docker's multiplexed stream */
  constructor(duplex: Duplex) {
    this.#duplex = duplex;
    this.#pinging = setInterval(() => this.#ping(), PING_MS);
    this.#pinging.unref();
    const lines = lineReader((line) => this.#receive(line), {
      maxBytes: () => (this.#pending.size === 0 ? MAX_IDLE_BYTES : MAX_ANSWER_BYTES),
      tooLong: () => this.#end("it sent an answer that is too long"),
    });
    const frames = frameReader((channel, bytes) => {
      if (channel !== STDERR) lines(bytes);
      else this.#trouble = cutTail(this.#trouble + bytes.toString("utf8"), MAX_TROUBLE_CHARS).trim();
    });
    duplex.on("data", (chunk: Buffer) => {
      this.#heardAtMs = performance.now();
      frames(chunk);
    });
    duplex.on("error", (error: Error) => this.#end(error.message));
    duplex.on("end", () => this.#end("closed by the other side"));
    duplex.on("close", () => this.#end("closed"));
  }

  get ended(): boolean {
    return this.#ended;
  }

  close(): void {
    this.#end("closed by us");
  }

  /** @throws StreamEnded; Error with the supervisor's text if it refuses the request; the signal's reason. */
  async request(
    op: string,
    fields: object,
    { signal, onBytes }: RequestOptions = {},
  ): Promise<SupervisorAnswer> {
    if (this.#ended) throw new StreamEnded("the stream to the sandbox has ended");
    signal?.throwIfAborted();
    const q = ++this.#lastNumber;
    const { promise, resolve, reject } = Promise.withResolvers<SupervisorAnswer>();
    const aborted = (): void => {
      this.#pending.delete(q);
      if (!this.#ended) this.#send({ q: ++this.#lastNumber, op: "unwait", of: q });
      reject(signal?.reason);
    };
    signal?.addEventListener("abort", aborted, { once: true });
    this.#pending.set(q, { onBytes, resolve, reject });
    this.#send({ ...fields, q, op });
    try {
      return await promise;
    } finally {
      signal?.removeEventListener("abort", aborted);
    }
  }

  #ping(): void {
    const silentMs = performance.now() - this.#heardAtMs;
    if (this.#pending.size === 0) this.#heardAtMs = performance.now();
    else if (silentMs > 2 * PING_MS)
      this.#end(`the supervisor has not answered for ${Math.round(silentMs / 1000)} s`);
    else this.#send({ q: 0, op: "ping" });
  }

  #send(message: object): void {
    this.#duplex.write(`${JSON.stringify(message)}\n`);
  }

  #receive(line: string): void {
    let message: { q: number; ok?: SupervisorAnswer; error?: string; bytes?: number };
    try {
      message = JSON.parse(line) as typeof message;
    } catch (error) {
      return this.#end(`it sent an invalid answer (${String(error)})`);
    }
    const pending = this.#pending.get(message.q);
    if (pending === undefined) return;
    if (message.bytes !== undefined) {
      pending.onBytes?.(message.bytes);
      return;
    }
    this.#pending.delete(message.q);
    if (message.ok === undefined)
      pending.reject(new Error(`the sandbox's supervisor refused: ${message.error}`));
    else pending.resolve(message.ok);
  }

  #end(why: string): void {
    if (this.#ended) return;
    this.#ended = true;
    clearInterval(this.#pinging);
    this.#duplex.destroy();
    const error = new StreamEnded(`the stream to the sandbox ended: ${this.#trouble || why}`);
    for (const { reject } of this.#pending.values()) reject(error);
    this.#pending.clear();
  }
}

/**
 * Demultiplexes Docker's stream. The client library's own function copies everything it holds at each chunk: a long answer took
 * twice the memory.
 */
export function frameReader(onPiece: (channel: number, bytes: Buffer) => void): (chunk: Buffer) => void {
  const head = Buffer.alloc(HEAD_BYTES);
  let headFilled = 0;
  let bytesLeft = 0;
  return (chunk) => {
    let at = 0;
    while (at < chunk.length) {
      if (bytesLeft === 0) {
        const count = chunk.copy(head, headFilled, at, at + HEAD_BYTES - headFilled);
        headFilled += count;
        at += count;
        if (headFilled < HEAD_BYTES) return;
        headFilled = 0;
        bytesLeft = head.readUInt32BE(4);
        continue;
      }
      const piece = chunk.subarray(at, at + bytesLeft);
      at += piece.length;
      bytesLeft -= piece.length;
      onPiece(head[0] ?? 0, piece);
    }
  };
}

interface LineLimit {
  readonly maxBytes: () => number;
  /** Nothing is kept of a line that is too long, and no further line is read. */
  readonly tooLong: () => void;
}

/** Joins pieces only when a line is complete or has many, so that a long line is copied only twice. */
function lineReader(onLine: (line: string) => void, limit: LineLimit): (bytes: Buffer) => void {
  let joined: Buffer[] = [];
  let pieces: Buffer[] = [];
  let length = 0;
  let isOver = false;
  return (bytes) => {
    let rest = bytes;
    for (let end = rest.indexOf("\n"); end >= 0 && !isOver; end = rest.indexOf("\n")) {
      isOver = length + end > limit.maxBytes();
      if (isOver) break;
      const line = Buffer.concat([...joined, ...pieces, rest.subarray(0, end)]).toString("utf8");
      [joined, pieces, length] = [[], [], 0];
      rest = rest.subarray(end + 1);
      onLine(line);
    }
    isOver ||= length + rest.length > limit.maxBytes();
    if (isOver) {
      [joined, pieces, length] = [[], [], 0];
      return limit.tooLong();
    }
    if (rest.length === 0) return;
    length += rest.length;
    if (pieces.push(rest) < MAX_PIECES) return;
    joined.push(Buffer.concat(pieces));
    pieces = [];
  };
}
