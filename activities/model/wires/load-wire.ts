/** The wire of an API: each is loaded when it is first named. */
import type { Api } from "../../config/model-target.ts";
import { loadPart } from "../../process/load-part.ts";
import type { Wire } from "./wire.ts";

const LOADERS: Readonly<Record<Api, () => Promise<Wire>>> = {
  responses: async () => (await loadPart(import("./responses.ts"))).responsesWire,
  chat: async () => (await loadPart(import("./chat.ts"))).chatWire,
  messages: async () => (await loadPart(import("./messages.ts"))).messagesWire,
  gemini: async () => (await loadPart(import("./gemini.ts"))).geminiWire,
};

export function loadWire(api: Api): Promise<Wire> {
  return LOADERS[api]();
}
