/** What the wires' writers have in common. Pure. */
import type { ReplyPart, WireUsage } from "./wire.ts";

/** Content of an answer; a reply's other parts act on the stream and never reach a writer. */
export type ContentPart = Extract<ReplyPart, { type: "text" | "refusal" | "reasoning" | "call" }>;

export interface Frame {
  readonly text: string;
  /** A pause may follow it. */
  readonly delta: boolean;
}

export interface Closing {
  readonly finish: "stop" | "tool-calls" | "length" | "content-filter";
  readonly usage: WireUsage | undefined;
}

/** Turns a reply into one wire's events. One per answer. */
export interface AnswerWriter {
  begin(): string;
  part(part: ContentPart, chunkChars: number): Iterable<Frame>;
  finish(closing: Closing): string;
  error(code: string | null, message: string): string;
  /** The answer of a request without a stream, from the parts written so far. */
  whole(closing: Closing): unknown;
}

export interface Answering {
  readonly model: string;
  /** Number of the answer, for its ids. */
  readonly number: number;
}

/** Cuts on code points, as the real service never sends half a character. */
export function* chunksOf(text: string, chars: number): Iterable<string> {
  for (let start = 0; start < text.length;) {
    let end = Math.min(text.length, start + chars);
    const last = text.charCodeAt(end - 1);
    if (end < text.length && last >= 0xd800 && last <= 0xdbff) end += 1;
    yield text.slice(start, end);
    start = end;
  }
}

/** A frame for each piece of a text. */
export function* deltasOf(text: string, chars: number, event: (piece: string) => string): Iterable<Frame> {
  for (const piece of chunksOf(text, chars)) yield { text: event(piece), delta: true };
}

/** What a text stands for; undefined if it is not JSON. */
export function jsonIn(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** The arguments as text on the wire. */
export function argumentsText(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value ?? {});
}
