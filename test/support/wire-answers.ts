/** Raw answers of each wire, as servers write them: the events of a text, and a server that sends what a test gives. */
import { createServer } from "node:http";
import type { Api, WireOptions } from "../../activities/config/model-target.ts";
import { listen } from "./listen.ts";
import { ask, type Asked, type RequestParts } from "./model-request.ts";

/** @param word the wire's own for the end of an answer; default: that of an answer that is complete */
export const textEvents: Readonly<Record<Api, (text: string, word?: string) => readonly object[]>> = {
  chat: (text, word = "stop") => [
    ...Array.from(text).map((content) => ({ choices: [{ index: 0, delta: { content } }] })),
    { choices: [{ index: 0, delta: {}, finish_reason: word }] },
  ],
  responses: (text) => [
    { type: "response.created", response: { id: "r", created_at: 1, model: "m" } },
    {
      type: "response.output_item.added",
      output_index: 0,
      item: { type: "message", id: "i", role: "assistant", content: [] },
    },
    ...Array.from(text).map((delta) => ({
      type: "response.output_text.delta",
      item_id: "i",
      output_index: 0,
      content_index: 0,
      delta,
    })),
    {
      type: "response.output_item.done",
      output_index: 0,
      item: {
        type: "message",
        id: "i",
        role: "assistant",
        content: [{ type: "output_text", text, annotations: [] }],
      },
    },
    {
      type: "response.completed",
      response: { id: "r", output: [], usage: { input_tokens: 9, output_tokens: 1 } },
    },
  ],
  messages: (text, word = "end_turn") => [
    {
      type: "message_start",
      message: {
        id: "m",
        type: "message",
        role: "assistant",
        model: "m",
        content: [],
        usage: { input_tokens: 9, output_tokens: 1 },
      },
    },
    { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
    ...Array.from(text).map((piece) => ({
      type: "content_block_delta",
      index: 0,
      delta: { type: "text_delta", text: piece },
    })),
    { type: "content_block_stop", index: 0 },
    { type: "message_delta", delta: { stop_reason: word }, usage: { output_tokens: 1 } },
    { type: "message_stop" },
  ],
  gemini: (text, word = "STOP") => [
    ...Array.from(text).map((piece) => ({
      candidates: [{ content: { role: "model", parts: [{ text: piece }] } }],
    })),
    {
      candidates: [{ content: { role: "model", parts: [] }, finishReason: word }],
      usageMetadata: { promptTokenCount: 9, candidatesTokenCount: 1 },
    },
  ],
};

export const apis = Object.keys(textEvents) as Api[];

export const streamOf = (events: readonly object[]): string =>
  events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join("");

/** Asks a server that answers each request with this body. */
export async function askOne(
  api: Api,
  body: string,
  {
    contentType = "text/event-stream",
    options,
    ...request
  }: RequestParts & { readonly contentType?: string; readonly options?: WireOptions } = {},
): Promise<Asked> {
  const server = createServer((_, response) => {
    response.writeHead(200, { "content-type": contentType });
    response.end(body);
  });
  const provider = {
    name: "acme",
    baseUrl: `http://127.0.0.1:${await listen(server)}/v1`,
    options,
  };
  return ask("", { api, provider, ...request });
}
