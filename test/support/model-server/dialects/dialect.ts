/** How a server differs from the four wires as their owners document them. Types only. */
import type { KnownFields } from "../check-fields.ts";
import type { Fault } from "../refusal.ts";
import type { HttpError, ParsedRequest, ServedModel, WireApi } from "../wire.ts";

export type DialectName =
  | "openai"
  | "openai-chat"
  | "openrouter"
  | "azure"
  | "azure-classic"
  | "vllm"
  | "vllm-responses"
  | "ollama"
  | "lmstudio"
  | "llamacpp"
  | "litellm"
  | "deepseek"
  | "kimi"
  | "glm"
  | "groq"
  | "together"
  | "mistral"
  | "gemini-compatible"
  | "anthropic"
  | "gemini";

export interface Dialect {
  /** The wire that a session on it uses; others are served as well where the server has them. */
  readonly api: WireApi;
  /** Base URL of a client, after the host. Default `/v1`. */
  readonly basePath?: string;
  /** Header with the key; default by wire. `none` takes every request, as a local server. */
  readonly key?: "bearer" | "api-key" | "none";
  /** Query that every request must carry. */
  readonly query?: Readonly<Record<string, string>>;
  /** What a parameter may be depends on the model, as OpenAI has it: no temperature for those that reason, and so on. */
  readonly byModel?: true;
  /** What is taken beside the official schema; default nothing. Of OpenAI's two wires. */
  readonly known?: KnownFields;
  /** Refuses what only this server does, with its own words. */
  readonly check?: (request: Omit<ParsedRequest, "inputTokens">, model: ServedModel) => void;
  readonly chat?: Partial<ChatStyle>;
  readonly overflow?: (size: PromptSize) => Fault;
  /** Cuts a prompt that is too long in silence, and bills what is left. */
  readonly truncates?: true;
  /** A 429 that asks for so many seconds. */
  readonly rateLimit?: (seconds: number) => HttpError;
  readonly errorBody?: (fault: Fault) => unknown;
}

interface PromptSize {
  readonly tokens: number;
  readonly window: number;
  readonly maxOutputTokens: number;
}

/** The stream of chat completions. */
export interface ChatStyle {
  /** Where thoughts stand in a delta. */
  readonly reasoning: "reasoning_content" | "reasoning" | "reasoning_details" | "none";
  /** Before the first chunk, as it is: comments, empty chunks, a filter's results. */
  readonly opening: string;
  /** After the first piece, as it is. */
  readonly between: string;
  /** In every delta: some servers repeat the role. */
  readonly everyDelta: Readonly<Record<string, unknown>>;
  readonly callId: (answer: number, index: number, name: string) => string;
  /** A call in pieces; whole with its arguments as text; whole as an object; or whole and without `index`. */
  readonly calls: "pieces" | "whole" | "object" | "no-index";
  /** Fields of a call's later pieces, beside its arguments. */
  readonly laterPieces: Readonly<Record<string, unknown>>;
  /** `extra_content.google.thought_signature` on the first call of an answer. */
  readonly signature: boolean;
  readonly usage: "own-chunk" | "with-finish" | "in-choice" | "x_groq";
  /** Usage comes unasked. */
  readonly alwaysUsage: boolean;
  readonly usageOf: (usage: Readonly<Record<string, unknown>>) => Readonly<Record<string, unknown>>;
  readonly finishOfCalls: "tool_calls" | "stop";
  /** An error after the stream began, as the server's event. */
  readonly midStream: (fault: Fault, chunk: Readonly<Record<string, unknown>>) => string;
}
