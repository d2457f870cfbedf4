/** Servers on the user's machine. They accept any key, and send nothing before the prompt is read. */
import type { Fault } from "../refusal.ts";
import { event } from "./chat-style.ts";
import { noFinalAssistant } from "./checks.ts";
import { type Dialect, LENIENT } from "./dialect.ts";

export const LOCAL = {
  // Source: docs.vllm.ai, "OpenAI-compatible server" and "Reasoning outputs".
  vllm: {
    api: "chat",
    key: "none",
    known: LENIENT,
    chat: {
      reasoning: "reasoning",
      callId: (answer, index) => `chatcmpl-tool-${answer.toString(16).padStart(8, "0")}${index}`,
      midStream: ({ status, message }) =>
        event({ error: { message, type: "InternalServerError", param: null, code: status } }) +
        "data: [DONE]\n\n",
    },
    overflow: ({ tokens, window }) => ({
      message: `The decoder prompt (length ${tokens}) is longer than the maximum model length of ${window}. Make sure that \`max_model_len\` is no smaller than the number of text tokens.`,
    }),
    errorBody: vllmError,
  },
  // Its pydantic models follow the official schema: an image of a person needs `detail`. Source: vercel/ai#20300.
  "vllm-responses": {
    api: "responses",
    key: "none",
    known: { parameters: "any", fields: "any", needsDetail: true },
    overflow: ({ tokens, window }) => ({
      message: `This model's maximum context length is ${window} tokens. However, your request has ${tokens} input tokens. Please reduce the length of the input messages.`,
    }),
    errorBody: vllmError,
  },
  // Cuts at its num_ctx without an error; whole calls, sometimes with an empty `type`.
  // Source: TradingAgents#168; opencode#27920 (last message); Ollama's OpenAI compatibility page.
  ollama: {
    api: "chat",
    key: "none",
    known: LENIENT,
    truncates: true,
    chat: {
      reasoning: "reasoning",
      everyDelta: { role: "assistant" },
      calls: "whole",
      callId: (answer, index) => `call_${(answer * 7_919 + index).toString(36).padStart(8, "0")}`,
      finishOfCalls: "tool_calls",
    },
    check: noFinalAssistant("last message must be from user or tool"),
    errorBody: ({ message }) => ({ error: { message, type: "api_error", param: null, code: null } }),
  },
  // Errors as a named event, ids of digits. Source: lmstudio.ai/docs, "OpenAI compatibility"; overflow: public reports.
  lmstudio: {
    api: "chat",
    key: "none",
    known: LENIENT,
    chat: {
      reasoning: "reasoning_content",
      callId: (answer, index) => String(answer * 1_000_000 + index + 100_000_000),
      midStream: ({ message }) => `event: error\n${event({ error: { message } })}`,
    },
    overflow: ({ window }) => ({
      message: `Trying to keep the first 4096 tokens when context the overflows. However, the model is loaded with context length of only ${window} tokens, which is not enough. Try to load the model with a larger context length, or provide a shorter input`,
    }),
    errorBody: ({ message }) => ({ error: message }),
  },
  // Refuses a last message of the assistant if thinking is on. Source: llama.cpp server's README; hermes-agent#80265.
  llamacpp: {
    api: "chat",
    key: "none",
    known: LENIENT,
    chat: {
      reasoning: "reasoning_content",
      callId: (answer, index) => `${"x".repeat(24)}${answer.toString(36)}z${index}`,
    },
    check: noFinalAssistant("Assistant response prefill is incompatible with enable_thinking.", 500),
    overflow: ({ tokens, window }) => ({
      message: `request (${tokens} tokens) exceeds the available context size (${window} tokens), try increasing it`,
      code: "exceed_context_size_error",
    }),
    errorBody: ({ status, message, code }) => ({
      error: { code: status, message, type: code ?? "invalid_request_error" },
    }),
  },
} satisfies Record<string, Dialect>;

function vllmError({ status, message }: Fault): unknown {
  return {
    error: {
      message,
      type: status >= 500 ? "InternalServerError" : "BadRequestError",
      param: null,
      code: status,
    },
  };
}
