/** Which events of the messages wire are pieces of a text. Source: Anthropic's reference of streaming. */
import { isJsonObject } from "../../contract/json-object.ts";
import type { Piece, StreamEvent } from "../stream-events.ts";

/** By the kind of delta: the field with its text. */
const TEXTS: Readonly<Record<string, string>> = {
  text_delta: "text",
  thinking_delta: "thinking",
  input_json_delta: "partial_json",
};

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
