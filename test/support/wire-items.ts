/** Our messages as items of a request, for the strict server's checks without a server. */
import type { ModelMessage } from "ai";
import type { Message } from "../../activities/contract/message.ts";
import { toModelMessages } from "../../activities/model/request/to-model-messages.ts";
import type { WireItem } from "./model-server/wire.ts";
import { askedAs } from "./run-config.ts";

type Api = "responses" | "chat";

/** The SDK's input, flat and in order, as each wire has it. */
export function wireItems(messages: readonly Message[], api: Api): WireItem[] {
  return toModelMessages(messages, { ...askedAs("openai/o3"), api }).flatMap((message) =>
    itemsOf(message, api),
  );
}

function itemsOf(message: ModelMessage, api: Api): WireItem[] {
  if (message.role === "system" || typeof message.content === "string")
    throw new Error("Not sent like this.");
  const items = message.content.flatMap((part): WireItem[] => {
    if (part.type === "text") {
      const role = message.role === "assistant" ? "assistant" : "user";
      return [{ type: "message", role, parts: [{ type: "text", text: part.text }] }];
    }
    if (part.type === "file") {
      return [
        { type: "message", role: "user", parts: [{ type: "image", mediaType: part.mediaType, bytes: 1 }] },
      ];
    }
    if (part.type === "reasoning") return [{ type: "reasoning", id: "rs", text: part.text }];
    if (part.type === "tool-call") {
      const { toolCallId: callId, toolName: name, input } = part;
      return [{ type: "call", callId, name, arguments: JSON.stringify(input) }];
    }
    if (part.type === "tool-result") {
      const { output } = part;
      const text = output.type === "text" ? output.value : JSON.stringify(output);
      return [{ type: "result", callId: part.toolCallId, parts: [{ type: "text", text }] }];
    }
    return [];
  });
  // A chat message has its text before its calls.
  return api === "responses"
    ? items
    : [...items.filter((item) => item.type !== "call"), ...items.filter((item) => item.type === "call")];
}
