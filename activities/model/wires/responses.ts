/** OpenAI's Responses, at OpenAI, Azure and servers that speak it. */
import { createOpenAI } from "@ai-sdk/openai";
import { cacheKeyOf } from "../request/cache-key.ts";
import { isThinking } from "../request/wire-rules.ts";
import { ResponsesStream } from "./responses-stream.ts";
import { NO_KEY, options, summaryOf, type WireCall, type WireSettings } from "./wire.ts";

export function responsesWire({ request, endpoint, rules, fetchWith }: WireCall): WireSettings {
  const { target } = request;
  const provider = createOpenAI({
    apiKey: endpoint.apiKey ?? NO_KEY,
    ...(endpoint.baseUrl === undefined ? {} : { baseURL: endpoint.baseUrl }),
    fetch: fetchWith(new ResponsesStream()),
  });
  return {
    model: provider.responses(endpoint.modelId),
    providerOptions: options("openai", {
      store: false,
      strictJsonSchema: false,
      // Sent only to models that reason: those the package knows by name, and those that the configuration marks.
      reasoningSummary: summaryOf(target),
      ...(isThinking(target) ? { forceReasoning: true } : {}),
      ...(target.verbosity === undefined ? {} : { textVerbosity: target.verbosity }),
      ...(rules.cacheKey ? { promptCacheKey: cacheKeyOf(request.cacheKey) } : {}),
      ...(rules.cacheKey && target.cache === "24h" ? { promptCacheRetention: "24h" } : {}),
      ...(request.tools.length > 0 ? { parallelToolCalls: true } : {}),
    }),
  };
}
