/**
 * A response's body of server-sent events: each one's data can be repaired on its way, and pieces of a text are combined when no
 * reader needs them at once.
 */
import type { Readable } from "node:stream";
import { isJsonObject, type JsonObject } from "../text/json.ts";

export type StreamEvent = JsonObject;
/** Returns what is passed on instead of an event; undefined: nothing. */
export type RepairEvent = (event: StreamEvent) => StreamEvent | readonly StreamEvent[] | undefined;

/** An event that is a piece of a text, and nothing else. */
export interface Piece {
  /** Identifies the text: consecutive pieces of the same text may be combined. */
  readonly of: string;
  readonly text: string;
  /** The same event with another text. */
  with(text: string): StreamEvent;
}
export type FindPiece = (event: StreamEvent) => Piece | undefined;

export interface StreamReading {
  readonly repair?: RepairEvent | undefined;
  /** Default: no event is a piece. */
  readonly piece?: FindPiece | undefined;
  /**
   * The events of an answer that came as one JSON value instead of a stream, repaired as those of a stream are; undefined if it is no
   * answer. Default: there is none.
   */
  readonly whole?: ((body: unknown) => readonly StreamEvent[] | undefined) | undefined;
  /** The events that a complete stream lacks at its end. */
  readonly ending?: (() => readonly StreamEvent[]) | undefined;
}

/** A successful response that is neither a stream nor an answer: the words of its body say what it is. */
class UnexpectedBody extends Error {
  override readonly name = "UnexpectedBody";
  /** Read by `readErrorFacts`, as that of a refused request. */
  readonly responseBody: string;

  constructor(body: string) {
    super(body.trim() === "" ? "The response has no body." : "The response is not an answer.");
    this.responseBody = body;
  }
}

/** Of a body that is not a stream. Chosen: some ten times the longest answers with a picture. */
const MAX_WHOLE_CHARS = 64_000_000;

/**
 * Repairs the text of such a stream. Only an event's data is passed on, which is all that the SDKs read. Events whose data is
 * not a JSON object, such as `[DONE]`, are passed on as they are.
 */
export class RepairedEvents {
  readonly #repair: RepairEvent;
  readonly #piece: FindPiece;
  readonly #whole: NonNullable<StreamReading["whole"]>;
  readonly #ending: NonNullable<StreamReading["ending"]>;
  /** Whether the body is events; undefined until its first character, and at last false for JSON or a page. */
  #isStream: boolean | undefined;
  #wholeChars = 0;
  readonly #decoder = new TextDecoder();
  /** Pieces of a line that is not complete yet: joined once, since a line may be long. */
  readonly #rest: string[] = [];
  /** Lines of the event that is not complete yet. */
  #lines: string[] = [];
  #held: { readonly last: Piece; text: string } | undefined;

  constructor({ repair = (event) => event, piece = () => undefined, whole, ending }: StreamReading) {
    this.#repair = repair;
    this.#piece = piece;
    this.#whole = whole ?? (() => undefined);
    this.#ending = ending ?? (() => []);
  }

  /** Whether pieces are held back. */
  get isHolding(): boolean {
    return this.#held !== undefined;
  }

  /**
   * @param hold pieces may wait for `release`, to be combined with those that follow
   * @returns the events that are now complete; empty if none is
   * @throws UnexpectedBody if a body that is no stream is too long to be an answer
   */
  take(bytes: Uint8Array, hold = false): string {
    const text = this.#decoder.decode(bytes, { stream: true });
    this.#isStream ??= text.trim() === "" ? undefined : !/^\s*[[{<]/.test(text);
    if (this.#isStream === false) return this.#keep(text);
    const end = text.lastIndexOf("\n");
    const lines = end === -1 ? [] : (this.#takeRest() + text.slice(0, end)).split("\n");
    this.#rest.push(text.slice(end + 1));
    const events = lines.map((line) => this.#line(line)).join("");
    return hold ? events : events + this.release();
  }

  /** @returns what was held back */
  release(): string {
    const pending = this.#held;
    this.#held = undefined;
    return pending === undefined ? "" : dataOf(pending.last.with(pending.text));
  }

  /**
   * @returns the events that are left
   * @throws UnexpectedBody if the body is neither a stream nor an answer
   */
  end(): string {
    const rest = this.#takeRest() + this.#decoder.decode();
    if (this.#isStream === false) return this.#wholeOf(rest);
    const left = (rest === "" ? "" : this.#line(rest)) + this.#line("");
    return (
      left +
      this.#ending()
        .map((event) => this.#event(event))
        .join("") +
      this.release()
    );
  }

  #keep(text: string): string {
    this.#wholeChars += text.length;
    if (this.#wholeChars > MAX_WHOLE_CHARS) throw new UnexpectedBody(this.#takeRest());
    this.#rest.push(text);
    return "";
  }

  #wholeOf(body: string): string {
    let events: readonly StreamEvent[] | undefined;
    try {
      events = this.#whole(JSON.parse(body));
    } catch {
      // No JSON: the body's words say what it is.
    }
    if (events === undefined) throw new UnexpectedBody(body);
    return events.map((event) => this.#event(event)).join("") + this.release();
  }

  #takeRest(): string {
    return this.#rest.splice(0).join("");
  }

  #line(line: string): string {
    if (line !== "" && line !== "\r") {
      this.#lines.push(line);
      return "";
    }
    const lines = this.#lines;
    this.#lines = [];
    const data = lines.filter((text) => text.startsWith("data:"));
    const [only = ""] = data;
    const event = data.length === 1 ? parsed(only.slice("data:".length)) : undefined;
    if (event !== undefined) return this.#repaired(event, only);
    return data.length === 0 ? "" : this.release() + `${data.join("\n")}\n\n`;
  }

  #repaired(event: StreamEvent, line: string): string {
    const repaired = this.#repair(event);
    if (repaired === undefined) return "";
    if (repaired === event) return this.#event(event, `${line}\n\n`);
    return [repaired]
      .flat()
      .map((part) => this.#event(part))
      .join("");
  }

  #event(event: StreamEvent, data?: string): string {
    const last = this.#piece(event);
    if (last === undefined) return this.release() + (data ?? dataOf(event));
    const before = this.#held?.last.of === last.of ? "" : this.release();
    this.#held = { last, text: (this.#held?.text ?? "") + last.text };
    return before;
  }
}

const dataOf = (event: StreamEvent) => `data: ${JSON.stringify(event)}\n\n`;

function parsed(data: string): StreamEvent | undefined {
  try {
    const value: unknown = JSON.parse(data);
    return isJsonObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

export interface Gathering {
  /** Absent: the bytes are passed on as they are. */
  readonly reading: StreamReading | undefined;
  /** How long a piece may be held back now, in ms, so that those that follow come with it. */
  readonly gatherMs: () => number;
  /** Called when bytes arrive, even if they are only a comment. */
  readonly onBytes: () => void;
}

/**
 * A body with its events repaired and its pieces combined. Each event costs its later readers some 0.5 ms of a processor, for checks of its form and four streams: with a long answer
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

  constructor(reading: StreamReading, gatherMs: () => number) {
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
