/**
 * One kept stream to a sandbox's supervisor: requests with numbers, several under way at once, one JSON text a line.
 * The stream is Docker's multiplexed one (8 bytes of head before each piece). Memory is bounded by what was asked for:
 * the supervisor sends nothing unasked but progress, and that only while its buffer is empty.
 */
import type { Duplex } from "node:stream";
import { cutTail } from "../../contract/cut-text.ts";

/** The stream ended; what was under way may or may not have been done. */
export class StreamEnded extends Error {
  override readonly name = "StreamEnded";
}

export type Answer = Readonly<Record<string, unknown>>;

export interface RequestOptions {
  readonly signal?: AbortSignal | undefined;
  readonly onBytes?: ((bytes: number) => void) | undefined;
}

export interface SupervisorStream {
  /** @throws StreamEnded; Error with the supervisor's text where it refuses the request; the signal's reason. */
  request(op: string, fields: object, options?: RequestOptions): Promise<Answer>;
  readonly ended: boolean;
  close(): void;
}

interface Pending {
  readonly resolve: (answer: Answer) => void;
  readonly reject: (error: unknown) => void;
  readonly onBytes: ((bytes: number) => void) | undefined;
}

/** While something is under way the supervisor is asked for a sign of life this often; two missed ones end the stream. */
const PING_MS = 15_000;
const HEAD_BYTES = 8;
const STDERR = 2;
const NEWLINE = 10;

export function createSupervisorStream(duplex: Duplex): SupervisorStream {
  const pending = new Map<number, Pending>();
  let ended = false;
  let lastNumber = 0;
  let heardAtMs = performance.now();
  let trouble = "";

  const pinging = setInterval(() => {
    if (pending.size === 0) {
      heardAtMs = performance.now();
    } else if (performance.now() - heardAtMs > 2 * PING_MS) {
      end(
        `nothing was heard from the supervisor for ${Math.round((performance.now() - heardAtMs) / 1000)} s`,
      );
    } else {
      send({ q: 0, op: "ping" });
    }
  }, PING_MS);
  pinging.unref();

  function send(message: object): void {
    duplex.write(`${JSON.stringify(message)}\n`);
  }

  function end(why: string): void {
    if (ended) return;
    ended = true;
    clearInterval(pinging);
    duplex.destroy();
    const error = new StreamEnded(`the stream to the sandbox ended: ${trouble || why}`);
    for (const each of pending.values()) each.reject(error);
    pending.clear();
  }

  function take(line: string): void {
    const message = JSON.parse(line) as { q: number; ok?: Answer; error?: string; bytes?: number };
    const waiting = pending.get(message.q);
    if (waiting === undefined) return;
    if (message.bytes !== undefined) {
      waiting.onBytes?.(message.bytes);
      return;
    }
    pending.delete(message.q);
    if (message.ok === undefined)
      waiting.reject(new Error(`the sandbox's supervisor refused: ${message.error}`));
    else waiting.resolve(message.ok);
  }

  const lines = lineReader(take);
  const pieces = pieceReader((channel, bytes) => {
    heardAtMs = performance.now();
    if (channel === STDERR) trouble = cutTail(trouble + bytes.toString("utf8"), 500).trim();
    else lines(bytes);
  });
  duplex.on("data", (chunk: Buffer) => {
    try {
      pieces(chunk);
    } catch (error) {
      end(`it sent what is no answer (${String(error)})`);
    }
  });
  duplex.on("error", (error: Error) => end(error.message));
  duplex.on("end", () => end("closed by the other side"));
  duplex.on("close", () => end("closed"));

  return {
    get ended() {
      return ended;
    },
    close: () => end("closed by us"),
    request(op, fields, { signal, onBytes } = {}) {
      return new Promise<Answer>((resolve, reject) => {
        if (ended) throw new StreamEnded("the stream to the sandbox has ended");
        signal?.throwIfAborted();
        const q = ++lastNumber;
        const aborted = (): void => {
          pending.delete(q);
          if (!ended) send({ q: ++lastNumber, op: "unwait", of: q });
          reject(signal?.reason);
        };
        const settled = (): void => signal?.removeEventListener("abort", aborted);
        signal?.addEventListener("abort", aborted, { once: true });
        pending.set(q, {
          onBytes,
          resolve: (answer) => (settled(), resolve(answer)),
          reject: (error) => (settled(), reject(error)),
        });
        send({ ...fields, q, op });
      });
    },
  };
}

/** Takes Docker's multiplexed stream apart. */
function pieceReader(onPiece: (channel: number, bytes: Buffer) => void): (chunk: Buffer) => void {
  const head = Buffer.alloc(HEAD_BYTES);
  let headFilled = 0;
  let left = 0;
  return (chunk) => {
    let at = 0;
    while (at < chunk.length) {
      if (left === 0) {
        const count = chunk.copy(head, headFilled, at, at + HEAD_BYTES - headFilled);
        headFilled += count;
        at += count;
        if (headFilled < HEAD_BYTES) return;
        headFilled = 0;
        left = head.readUInt32BE(4);
        continue;
      }
      const piece = chunk.subarray(at, at + left);
      at += piece.length;
      left -= piece.length;
      onPiece(head[0] ?? 0, piece);
    }
  };
}

/** Joins pieces only when a line is whole, so that a long line costs its length once. */
function lineReader(onLine: (line: string) => void): (bytes: Buffer) => void {
  let parts: Buffer[] = [];
  return (bytes) => {
    let rest = bytes;
    for (let end = rest.indexOf(NEWLINE); end >= 0; end = rest.indexOf(NEWLINE)) {
      parts.push(rest.subarray(0, end));
      const line = parts.length === 1 ? parts[0] : Buffer.concat(parts);
      parts = [];
      rest = rest.subarray(end + 1);
      onLine(line?.toString("utf8") ?? "");
    }
    if (rest.length > 0) parts.push(rest);
  };
}
