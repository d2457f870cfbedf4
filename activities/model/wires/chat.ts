/**
 * Chat completions, from any server. One adapter for all: it tolerates streams that differ from OpenAI's, and OpenAI itself
 * differs only by two names in the rules.
 */
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { cacheKeyOf } from "../request/cache-key.ts";
import { COMPATIBLE_KEY } from "../request/reasoning.ts";
import { toChatBody } from "./chat-body.ts";
import { ChatStream } from "./chat-stream.ts";
import { NO_KEY, options, type WireCall, type WireSettings } from "./wire.ts";

const OPENAI = "https://api.openai.com/v1";

export function chatWire({ request, endpoint, rules, fetchWith }: WireCall): WireSettings {
  const { target } = request;
  const stream = new ChatStream();
  const provider = createOpenAICompatible({
    name: COMPATIBLE_KEY,
    baseURL: endpoint.baseUrl ?? OPENAI,
    apiKey: endpoint.apiKey ?? NO_KEY,
    includeUsage: true,
    supportsMultiPartToolContent: rules.filesInResults,
    transformRequestBody: (body) => toChatBody(body, target, rules),
    fetch: fetchWith(stream),
    metadataExtractor: {
      extractMetadata: () => Promise.resolve(undefined),
      createStreamExtractor: () => ({
        processChunk: () => undefined,
        buildMetadata: () => ({ [COMPATIBLE_KEY]: stream.kept() }),
      }),
    },
  });
  return {
    model: provider.chatModel(endpoint.modelId),
    providerOptions: options(COMPATIBLE_KEY, {
      ...(target.verbosity === undefined ? {} : { textVerbosity: target.verbosity }),
      ...(rules.cacheKey ? { prompt_cache_key: cacheKeyOf(request.cacheKey) } : {}),
      ...(rules.cacheKey && target.cache === "24h" ? { prompt_cache_retention: "24h" } : {}),
    }),
  };
}
