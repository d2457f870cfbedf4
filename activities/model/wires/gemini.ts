/** Google's generateContent. */
import { createGoogle } from "@ai-sdk/google";
import { isJsonObject } from "../../text/json.ts";
import { isThinking } from "../request/wire-rules.ts";
import type { StreamEvent } from "../stream-events.ts";
import { NO_KEY, options, summaryOf, type WireCall, type WireSettings } from "./wire.ts";

export function geminiWire({ request, endpoint, fetchWith }: WireCall): WireSettings {
  const { target } = request;
  const provider = createGoogle({
    apiKey: endpoint.apiKey ?? NO_KEY,
    baseURL: endpoint.baseUrl,
    fetch: fetchWith({ whole: geminiEvents }),
  });
  return {
    model: provider(endpoint.modelId),
    providerOptions: options("google", {
      // Models that do not think refuse a request for thoughts.
      ...(isThinking(target) && summaryOf(target) !== null
        ? { thinkingConfig: { includeThoughts: true } }
        : {}),
      ...(target.tier === undefined ? {} : { serviceTier: target.tier }),
    }),
  };
}

/** Google gives one object, or a list of the chunks that it would have streamed. */
export function geminiEvents(body: unknown): readonly StreamEvent[] | undefined {
  const chunks = [body].flat().filter(isJsonObject);
  const isAnswer = chunks.some((chunk) => "candidates" in chunk || "promptFeedback" in chunk);
  return isAnswer && !chunks.some((chunk) => isJsonObject(chunk["error"])) ? chunks : undefined;
}
