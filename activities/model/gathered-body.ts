/** A response's body with its events repaired and its pieces combined when no reader needs them at once. */
import { RepairedEvents, type Reading } from "./stream-events.ts";

export interface Gathering {
  /** Absent: the bytes are passed on as they are. */
  readonly reading: Reading | undefined;
  /** How long a piece may be held back now, in ms, so that those that follow come with it. */
  readonly gatherMs: () => number;
  /** Called when bytes arrive, even if they are only a comment. */
  readonly onBytes: () => void;
}

/**
 * Each event costs its later readers some 0.5 ms of a processor, for checks of its form and four streams: with a long answer
 * in pieces of one token, most of a step's time. Other events, such as an end or a call, are never held back.
 */
export function gatheredBody(
  body: ReadableStream<Uint8Array>,
  { reading, gatherMs, onBytes }: Gathering,
): ReadableStream<Uint8Array> {
  const reader = body.getReader();
  const events = reading && new HeldEvents(reading, gatherMs);
  // A stream that is read on demand: a transform stream is three times as much work.
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      try {
        for (;;) {
          const { done, value } = await reader.read();
          if (done) {
            events?.end(controller);
            return controller.close();
          }
          onBytes();
          if (events === undefined) return controller.enqueue(value);
          if (events.take(controller, value)) return;
        }
      } catch (error) {
        events?.drop();
        throw error;
      }
    },
    cancel(reason) {
      events?.drop();
      return reader.cancel(reason);
    },
  });
}

type Controller = ReadableStreamDefaultController<Uint8Array>;

/** Passes the first piece after a pause on at once; pieces that follow it soon wait until the time is up. */
class HeldEvents {
  readonly #events: RepairedEvents;
  readonly #gatherMs: () => number;
  readonly #encoder = new TextEncoder();
  #timer: NodeJS.Timeout | undefined;
  /** Pieces are held back until then. */
  #holdsUntil = -Infinity;

  constructor(reading: Reading, gatherMs: () => number) {
    this.#events = new RepairedEvents(reading);
    this.#gatherMs = gatherMs;
  }

  /** @returns whether something was passed on */
  take(controller: Controller, bytes: Uint8Array): boolean {
    const leftMs = this.#holdsUntil - performance.now();
    const text = this.#events.take(bytes, leftMs > 0);
    if (text === "" && this.#events.isHolding)
      this.#timer ??= setTimeout(() => this.#send(controller, this.#events.release()), leftMs);
    return text !== "" && this.#send(controller, text + this.#events.release());
  }

  end(controller: Controller): void {
    this.#send(controller, this.#events.end());
  }

  drop(): void {
    clearTimeout(this.#timer);
  }

  #send(controller: Controller, text: string): boolean {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (text === "") return false;
    this.#holdsUntil = performance.now() + this.#gatherMs();
    controller.enqueue(this.#encoder.encode(text));
    return true;
  }
}
