/** Server-sent events: each one's data can be repaired on its way, and pieces of a text can be combined. */
import { isJsonObject, type JsonObject } from "../contract/json-object.ts";

export type StreamEvent = JsonObject;
/** Returns what is passed on instead of an event; undefined: nothing. */
export type Repair = (event: StreamEvent) => StreamEvent | undefined;

/** An event that is a piece of a text, and nothing else. */
export interface Piece {
  /** Identifies the text: consecutive pieces of the same text may be combined. */
  readonly of: string;
  readonly text: string;
  /** The same event with another text. */
  with(text: string): StreamEvent;
}
export type FindPiece = (event: StreamEvent) => Piece | undefined;

export interface Reading {
  readonly repair?: Repair | undefined;
  /** Default: no event is a piece. */
  readonly piece?: FindPiece | undefined;
}

/**
 * Repairs the text of such a stream. Only an event's data is passed on, which is all that the SDKs read. Events whose data is
 * not a JSON object, such as `[DONE]`, are passed on as they are.
 */
export class RepairedEvents {
  readonly #repair: Repair;
  readonly #piece: FindPiece;
  readonly #decoder = new TextDecoder();
  /** Pieces of a line that is not complete yet: joined once, since a line may be long. */
  readonly #rest: string[] = [];
  /** Lines of the event that is not complete yet. */
  #lines: string[] = [];
  #held: { readonly last: Piece; text: string } | undefined;

  constructor({ repair = (event) => event, piece = () => undefined }: Reading) {
    this.#repair = repair;
    this.#piece = piece;
  }

  /** Whether pieces are held back. */
  get isHolding(): boolean {
    return this.#held !== undefined;
  }

  /**
   * @param hold pieces may wait for `release`, to be combined with those that follow
   * @returns the events that are now complete; empty if none is
   */
  take(bytes: Uint8Array, hold = false): string {
    const text = this.#decoder.decode(bytes, { stream: true });
    const end = text.lastIndexOf("\n");
    const lines = end === -1 ? [] : (this.#takeRest() + text.slice(0, end)).split("\n");
    this.#rest.push(text.slice(end + 1));
    const events = lines.map((line) => this.#line(line)).join("");
    return hold ? events : events + this.release();
  }

  /** @returns what was held back */
  release(): string {
    const held = this.#held;
    this.#held = undefined;
    return held === undefined ? "" : dataOf(held.last.with(held.text));
  }

  /** @returns the events that are left */
  end(): string {
    const rest = this.#takeRest() + this.#decoder.decode();
    return (rest === "" ? "" : this.#line(rest)) + this.#line("") + this.release();
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
    if (event !== undefined) return this.#event(event, only);
    return data.length === 0 ? "" : this.release() + `${data.join("\n")}\n\n`;
  }

  #event(event: StreamEvent, line: string): string {
    const repaired = this.#repair(event);
    if (repaired === undefined) return "";
    const last = this.#piece(repaired);
    if (last === undefined) return this.release() + (repaired === event ? `${line}\n\n` : dataOf(repaired));
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
