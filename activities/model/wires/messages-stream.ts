/** Reads the events of the messages wire. Source: Anthropic's reference of streaming. */
import { isJsonObject, objectOf } from "../../contract/json-object.ts";
import type { Piece, Reading, StreamEvent } from "../stream-events.ts";
import { messageEvents } from "./whole-answers.ts";

/** By the kind of delta: the field with its text. */
const TEXTS: Readonly<Record<string, string>> = {
  text_delta: "text",
  thinking_delta: "thinking",
  input_json_delta: "partial_json",
};

/** An answer is whole once its reason for the end has come: some servers leave out the event that only closes it. */
export class MessagesStream implements Reading {
  #end: "none" | "said" | "closed" = "none";
  readonly whole = messageEvents;
  readonly piece = messagesPiece;

  readonly repair = (event: StreamEvent): StreamEvent => {
    const reason = objectOf(event["delta"])["stop_reason"];
    if (event["type"] === "message_delta" && typeof reason === "string") this.#end = "said";
    if (event["type"] === "message_stop") this.#end = "closed";
    return event;
  };

  readonly ending = (): StreamEvent[] => (this.#end === "said" ? [{ type: "message_stop" }] : []);
}

export function messagesPiece(event: StreamEvent): Piece | undefined {
  const { type, index, delta } = event;
  if (type !== "content_block_delta" || !isJsonObject(delta)) return undefined;
  const kind = String(delta["type"]);
  const field = TEXTS[kind];
  const text = field === undefined ? undefined : delta[field];
  if (field === undefined || typeof text !== "string") return undefined;
  const saying = (words: string) => ({ ...event, delta: { ...delta, [field]: words } });
  return { of: `${kind} ${String(index)}`, text, with: saying };
}
