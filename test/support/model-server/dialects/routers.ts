/** Services between us and a model's owner: routers, proxies, Azure. */
import { event } from "./chat-style.ts";
import { type Dialect, LENIENT } from "./dialect.ts";

const plain = (message: string, more: Record<string, unknown> = {}) => ({
  error: { message, type: "invalid_request_error", param: null, code: null, ...more },
});

export const ROUTERS = {
  // Comments while it waits, errors next to choices in mid-stream, the cost in the bill.
  // Source: openrouter.ai/docs, "Streaming" and "Errors"; dcdpr/jp#978, OmniRoute#8210, opencode#26170.
  openrouter: {
    api: "chat",
    basePath: "/api/v1",
    known: LENIENT,
    chat: {
      reasoning: "reasoning_details",
      opening: ": OPENROUTER PROCESSING\n\n: OPENROUTER PROCESSING\n\n",
      between: ": OPENROUTER PROCESSING\n\n",
      everyDelta: { role: "assistant" },
      alwaysUsage: true,
      usageOf: (usage) => ({ ...usage, cost: 0.0123, is_byok: false }),
      midStream: ({ status, message }, chunk) =>
        event({
          ...chunk,
          error: { code: status, message, metadata: { provider_name: "Upstream" } },
          choices: [{ index: 0, delta: { content: "" }, finish_reason: "error", native_finish_reason: null }],
        }) + "data: [DONE]\n\n",
    },
    overflow: ({ tokens, window }) => ({
      message: JSON.stringify(plain(`prompt is too long: ${tokens} tokens > ${window} maximum`)),
      param: "raw",
    }),
    rateLimit: (seconds) => ({
      headers: { "retry-after": String(seconds) },
      body: {
        error: {
          code: 429,
          message: "Provider returned error",
          metadata: { raw: "model is temporarily rate-limited upstream", provider_name: "Upstream" },
        },
      },
    }),
    errorBody: ({ status, message, param }) => ({
      error:
        param === "raw"
          ? {
              code: status,
              message: "Provider returned error",
              metadata: { raw: message, provider_name: "Upstream" },
            }
          : { code: status, message },
    }),
  },

  // The key in its own header, a version in the query, a first chunk without choices (classic).
  // Source: Microsoft's reference, "Azure OpenAI in Foundry Models v1" and "Content filtering".
  azure: {
    api: "responses",
    byModel: true,
    basePath: "/openai/v1",
    key: "api-key",
  },
  "azure-classic": {
    api: "chat",
    byModel: true,
    basePath: "/openai/deployments/gpt-4o",
    key: "api-key",
    query: { "api-version": "2024-10-21" },
    chat: {
      opening: event({
        id: "",
        object: "",
        created: 0,
        model: "",
        choices: [],
        prompt_filter_results: [{ prompt_index: 0, content_filter_results: {} }],
      }),
    },
    rateLimit: (seconds) => ({
      headers: { "retry-after": String(seconds), "retry-after-ms": String(seconds * 1_000) },
      body: plain(
        `Requests to the ChatCompletions_Create Operation under Azure OpenAI API version 2024-10-21 have exceeded call rate limit of your current OpenAI S0 pricing tier. Please retry after ${seconds} seconds.`,
        { code: "429", type: undefined },
      ),
    }),
  },

  // Drops `retry-after`, prefixes errors with its exceptions' names. Source: measured with 1.106.2 (test/wires).
  litellm: {
    api: "chat",
    known: LENIENT,
    chat: { reasoning: "reasoning_content", laterPieces: { id: null, type: "function" } },
    overflow: ({ tokens, window }) => ({
      message: `litellm.ContextWindowExceededError: litellm.BadRequestError: ContextWindowExceededError: OpenAIException - This model's maximum context length is ${window} tokens. However, your messages resulted in ${tokens} tokens.`,
    }),
    rateLimit: () => ({
      body: {
        error: {
          message: "litellm.RateLimitError: RateLimitError: OpenAIException - Slow down.",
          type: "throttling_error",
          param: null,
          code: "429",
        },
      },
    }),
  },
} satisfies Record<string, Dialect>;
