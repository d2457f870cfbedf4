/** Hosted services with their own chat completions. */
import { nineChars } from "./chat-style.ts";
import {
  all,
  noDeveloper,
  noFinalAssistant,
  oldLimitAlone,
  passedBackReasoning,
  mistralOrder,
  nineCharIds,
  moonshotSchemas,
  signedCalls,
  schemaWithout,
} from "./checks.ts";
import { type Dialect, LENIENT } from "./dialect.ts";

export const HOSTED = {
  // Source: api-docs.deepseek.com, "Thinking Mode"; pi#3636, kimi-cli#2141, hermes-agent#15478; keep-alive: its "Rate Limit".
  deepseek: {
    api: "chat",
    known: LENIENT,
    chat: {
      reasoning: "reasoning_content",
      opening: ": keep-alive\n\n",
      between: ": keep-alive\n\n",
      everyDelta: { role: "assistant" },
      usage: "with-finish",
      alwaysUsage: true,
      usageOf: ({ prompt_tokens: input, prompt_tokens_details: details, ...usage }) => {
        const hit = Number((details as { cached_tokens?: number } | undefined)?.cached_tokens ?? 0);
        return {
          ...usage,
          prompt_tokens: input,
          prompt_cache_hit_tokens: hit,
          prompt_cache_miss_tokens: Number(input) - hit,
        };
      },
    },
    check: all(
      noDeveloper,
      passedBackReasoning({
        empty: true,
        message: () => "The `reasoning_content` in the thinking mode must be passed back to the API.",
      }),
    ),
    overflow: ({ tokens, window }) => ({
      message: `This model's maximum context length is ${window} tokens. However, you requested ${tokens} tokens (${tokens} in the messages, 0 in the completion). Please reduce the length of the messages or completion.`,
      code: "invalid_request_error",
    }),
  },

  // Usage inside the choice, ids made of the tool's name. Source: crush#2696, hermes-agent#15478, LibreChat#13366; platform.moonshot.ai/docs;
  // schemas: kimi-cli#2061 #2531, opencodex#2673.
  kimi: {
    api: "chat",
    known: LENIENT,
    chat: {
      reasoning: "reasoning_content",
      callId: (answer, index, name) => `functions.${name}:${answer * 10 + index}`,
      usage: "in-choice",
      alwaysUsage: true,
      usageOf: ({ prompt_tokens_details: details, ...usage }) => ({
        ...usage,
        cached_tokens: (details as { cached_tokens?: number } | undefined)?.cached_tokens ?? 0,
      }),
    },
    check: all(
      moonshotSchemas,
      passedBackReasoning({
        empty: false,
        message: (index) =>
          `thinking is enabled but reasoning_content is missing in assistant tool call message at index ${index}`,
      }),
    ),
    overflow: ({ tokens, window }) => ({
      message: `Invalid request: Your request exceeded model token limit: ${window} (requested: ${tokens})`,
    }),
    rateLimit: (seconds) => ({
      body: {
        error: {
          message: `Your account reached max request per minute(RPM): 3, please try again after ${seconds} seconds`,
          type: "rate_limit_reached_error",
        },
      },
    }),
  },

  // Source: docs.z.ai, "Error Codes" (1261, 1302).
  glm: {
    api: "chat",
    basePath: "/api/paas/v4",
    known: LENIENT,
    chat: { reasoning: "reasoning_content", calls: "whole", usage: "with-finish", alwaysUsage: true },
    overflow: () => ({ message: "Prompt exceeds max length", code: "1261" }),
    rateLimit: () => ({
      body: {
        error: { code: "1302", message: "High concurrency usage of this API, please reduce concurrency." },
      },
    }),
    errorBody: ({ message, code }) => ({ error: { code: code ?? "1210", message } }),
  },

  // Source: console.groq.com/docs, "Reasoning" and "Errors"; usage in `x_groq` of the last chunk: @ai-sdk/groq.
  groq: {
    api: "chat",
    basePath: "/openai/v1",
    known: { parameters: ["reasoning_format", "include_reasoning"], fields: ["reasoning"] },
    chat: { reasoning: "reasoning", calls: "whole", usage: "x_groq", alwaysUsage: true },
    overflow: () => ({
      message: "Please reduce the length of the messages or completion.",
      code: "context_length_exceeded",
    }),
    rateLimit: (seconds) => ({
      headers: { "retry-after": String(seconds), "x-ratelimit-reset-tokens": `${seconds}s` },
      body: {
        error: {
          message: `Rate limit reached for model in organization on tokens per minute (TPM): Limit 6000. Please try again in ${seconds}s.`,
          type: "tokens",
          code: "rate_limit_exceeded",
        },
      },
    }),
  },

  // Source: docs.together.ai, "Error codes".
  together: {
    api: "chat",
    known: LENIENT,
    chat: { reasoning: "reasoning", laterPieces: { id: "", type: "", name: "" }, usage: "with-finish" },
    overflow: ({ tokens, window, maxOutputTokens }) => ({
      status: 422,
      message: `Input validation error: \`inputs\` tokens + \`max_new_tokens\` must be <= ${window}. Given: ${tokens} \`inputs\` tokens and ${maxOutputTokens} \`max_new_tokens\``,
    }),
  },

  // Nine-character ids, order of roles, unknown parameters refused by a validator.
  // Source: crush#279, datapizza-ai#98 (3230), eca#233 (3280), litellm#6323, goose#5998, zed#37021.
  mistral: {
    api: "chat",
    known: { parameters: ["safe_prompt", "random_seed", "prompt_mode"], fields: ["prefix"] },
    chat: { calls: "whole", callId: nineChars, usage: "with-finish", alwaysUsage: true },
    check: all(noDeveloper, oldLimitAlone, nineCharIds, mistralOrder),
    overflow: ({ tokens, window }) => ({
      message: `Prompt contains ${tokens} tokens and 0 draft tokens, too large for model with ${window} maximum context length`,
      code: "3051",
    }),
    rateLimit: () => ({
      body: {
        object: "error",
        message: "Rate limit exceeded",
        type: "rate_limited",
        param: null,
        code: "1300",
      },
    }),
    errorBody: ({ message, code }) => ({
      object: "error",
      message,
      type: "invalid_request_error",
      param: null,
      code,
    }),
  },

  // No `index`, signatures that must be sent back, errors in a list, a subset of schemas.
  // Source: openclaude#67 #393, nakama#292, opensquilla#225.
  "gemini-compatible": {
    api: "chat",
    basePath: "/v1beta/openai",
    known: { parameters: ["extra_body"], fields: ["extra_content"] },
    chat: {
      reasoning: "none",
      calls: "no-index",
      callId: (answer, index) => `function-call-${answer}${index}`,
      signature: true,
      everyDelta: { role: "assistant" },
      usage: "with-finish",
      alwaysUsage: true,
      finishOfCalls: "stop",
    },
    check: all(
      noFinalAssistant(
        "Please ensure that single turn requests end with a user role or the role field is empty.",
      ),
      schemaWithout(["exclusiveMinimum", "exclusiveMaximum", "$schema", "const"]),
      signedCalls,
    ),
    overflow: ({ tokens, window }) => ({
      message: `The input token count (${tokens}) exceeds the maximum number of tokens allowed (${window}).`,
    }),
    rateLimit: (seconds) => ({
      body: [
        {
          error: {
            code: 429,
            message: `You exceeded your current quota, please check your plan and billing details. Please retry in ${seconds}.9s.`,
            status: "RESOURCE_EXHAUSTED",
            details: [{ "@type": "type.googleapis.com/google.rpc.RetryInfo", retryDelay: `${seconds}s` }],
          },
        },
      ],
    }),
    errorBody: ({ status, message }) => [{ error: { code: status, message, status: "INVALID_ARGUMENT" } }],
  },
} satisfies Record<string, Dialect>;
