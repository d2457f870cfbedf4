/** How a server differs from the four wires as their owners document them. */
import type { KnownFields } from "../check-fields.ts";
import type { Fault } from "../refusal.ts";
import type { HttpError, ServedModel, UncountedRequest, WireApi } from "../wire.ts";

/** Takes whatever is sent. */
export const LENIENT: KnownFields = { parameters: "any", fields: "any" };

export interface Dialect {
  /** The wire that a session on it uses; the server may serve others as well. */
  readonly api: WireApi;
  /** Path of the base URL. Default `/v1`. */
  readonly basePath?: string;
  /** Header with the key; default by wire. `none` accepts every request, like a local server. */
  readonly key?: "bearer" | "api-key" | "none";
  /** Query parameters that every request must have. */
  readonly query?: Readonly<Record<string, string>>;
  /** Accepted parameters depend on the model, as at OpenAI: no temperature for those that reason, and so on. */
  readonly byModel?: true;
  /** What OpenAI's two wires accept beyond the official schema; default nothing. */
  readonly known?: KnownFields;
  /** Refuses what only this server refuses, with its own words. */
  readonly check?: (request: UncountedRequest, model: ServedModel) => void;
  readonly chat?: Partial<ChatStyle>;
  /** Its refusal of a prompt that is too long: a 400 unless it says otherwise. */
  readonly overflow?: (size: PromptSize) => Partial<Fault> & Pick<Fault, "message">;
  /** Cuts a prompt that is too long without an error, and bills the rest. */
  readonly truncates?: true;
  /** A 429 that asks for a wait in seconds. */
  readonly rateLimit?: (seconds: number) => Omit<HttpError, "status">;
  readonly errorBody?: (fault: Fault) => unknown;
}

interface PromptSize {
  readonly tokens: number;
  readonly window: number;
  readonly maxOutputTokens: number;
}

/** The stream of chat completions. */
export interface ChatStyle {
  /** Where a delta has its thoughts. */
  readonly reasoning: "reasoning_content" | "reasoning" | "reasoning_details" | "none";
  /** Sent literally before the first chunk: comments, empty chunks, a filter's results. */
  readonly opening: string;
  /** Sent literally after the first piece. */
  readonly between: string;
  /** In every delta: some servers repeat the role. */
  readonly everyDelta: Readonly<Record<string, unknown>>;
  readonly callId: (answer: number, index: number, name: string) => string;
  /** A call in pieces; whole with its arguments as text; whole as an object; or whole and without `index`. */
  readonly calls: "pieces" | "whole" | "object" | "no-index";
  /** Fields of a call's later pieces, in addition to its arguments. */
  readonly laterPieces: Readonly<Record<string, unknown>>;
  /** `extra_content.google.thought_signature` on the first call of an answer. */
  readonly signature: boolean;
  readonly usage: "own-chunk" | "with-finish" | "in-choice" | "x_groq";
  /** Usage is sent without a request for it. */
  readonly alwaysUsage: boolean;
  readonly usageOf: (usage: Readonly<Record<string, unknown>>) => Readonly<Record<string, unknown>>;
  readonly finishOfCalls: "tool_calls" | "stop";
  /** An error after the stream began, as the server's event. */
  readonly midStream: (fault: Fault, chunk: Readonly<Record<string, unknown>>) => string;
}
