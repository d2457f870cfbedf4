/** Anthropic's messages, at Anthropic and servers that speak it. */
import { createAnthropic } from "@ai-sdk/anthropic";
import { isThinking } from "../request/wire-rules.ts";
import { MessagesStream } from "./messages-stream.ts";
import { NO_KEY, options, summaryOf, type WireCall, type WireSettings } from "./wire.ts";

/** Claudes that decide themselves how long to think. Source: Anthropic's guide on adaptive thinking, from Claude 4.6 on. */
const ADAPTIVE = /claude-[a-z]+-(4-[6-9]|[5-9])/;

export function messagesWire({ request, endpoint, fetchWith }: WireCall): WireSettings {
  const { target } = request;
  const provider = createAnthropic({
    apiKey: endpoint.apiKey ?? NO_KEY,
    ...(endpoint.baseUrl === undefined ? {} : { baseURL: endpoint.baseUrl }),
    fetch: fetchWith(new MessagesStream()),
  });
  const display = summaryOf(target) === null ? "omitted" : "summarized";
  return {
    model: provider(endpoint.modelId),
    providerOptions: options(
      "anthropic",
      isThinking(target) && ADAPTIVE.test(endpoint.modelId)
        ? { thinking: { type: "adaptive", display } }
        : {},
    ),
  };
}
