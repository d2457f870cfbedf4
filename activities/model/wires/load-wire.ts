/** The wire of an API: each is loaded when it is first named. */
import type { Api } from "../../config/model-target.ts";
import type { Wire } from "./wire.ts";

const LOADERS: Readonly<Record<Api, () => Promise<Wire>>> = {
  responses: async () => (await import("./responses.ts")).responsesWire,
  chat: async () => (await import("./chat.ts")).chatWire,
  messages: async () => (await import("./messages.ts")).messagesWire,
  gemini: async () => (await import("./gemini.ts")).geminiWire,
};

export function loadWire(api: Api): Promise<Wire> {
  return LOADERS[api]();
}
