/** A response's body with its events repaired and its pieces combined when no reader needs them at once. */
import type { Readable } from "node:stream";
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
  body: Readable,
  { reading, gatherMs, onBytes }: Gathering,
): ReadableStream<Uint8Array> {
  const events = reading && new HeldEvents(reading, gatherMs);
  /** An error in a listener would end the process: it ends the body. */
  const orEnd = (step: () => void) => {
    try {
      step();
    } catch (error) {
      body.destroy(error instanceof Error ? error : new Error(String(error)));
    }
  };
  return new ReadableStream<Uint8Array>({
    start(controller) {
      const pass = (bytes: Uint8Array) => {
        onBytes();
        if (events === undefined) controller.enqueue(bytes);
        else events.take(controller, bytes);
        if ((controller.desiredSize ?? 0) <= 0) body.pause();
      };
      body.on("data", (bytes: Uint8Array) => orEnd(() => pass(bytes)));
      body.on("end", () => {
        try {
          events?.end(controller);
          controller.close();
        } catch (error) {
          // It has ended: destroying it would tell nobody.
          controller.error(error);
        }
      });
      body.on("error", (error) => {
        events?.drop();
        controller.error(error);
      });
    },
    pull: () => void body.resume(),
    cancel(reason: unknown) {
      events?.drop();
      body.destroy(reason instanceof Error ? reason : undefined);
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

  take(controller: Controller, bytes: Uint8Array): void {
    const leftMs = this.#holdsUntil - performance.now();
    const text = this.#events.take(bytes, leftMs > 0);
    if (text === "" && this.#events.isHolding)
      this.#timer ??= setTimeout(() => this.#send(controller, this.#events.release()), leftMs);
    if (text !== "") this.#send(controller, text + this.#events.release());
  }

  end(controller: Controller): void {
    this.#send(controller, this.#events.end());
  }

  drop(): void {
    clearTimeout(this.#timer);
  }

  #send(controller: Controller, text: string): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (text === "") return;
    this.#holdsUntil = performance.now() + this.#gatherMs();
    controller.enqueue(this.#encoder.encode(text));
  }
}
