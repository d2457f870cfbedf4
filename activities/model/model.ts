/** The port to a language model. Two adapters: the AI SDK (ai-sdk.ts) and the tests' scripted one. */
import type { ModelTarget } from "../config/model-target.ts";
import type { Deadlines } from "../config/run-policy.ts";
import type { StepUsage } from "../contract/activities.ts";
import type { AssistantPart, Message } from "../contract/message.ts";
import type { ToolSpec } from "../contract/tools.ts";
import type { FieldEdit } from "./refusals/body-fields.ts";

export interface Model {
  /**
   * One request, streamed. Never retries: Temporal owns retrying.
   * `onDelta` is called for each piece in order and must not throw.
   * @throws ModelError; on abort whatever the signal's reason is.
   */
  ask(request: ModelRequest, onDelta: (delta: ModelDelta) => void, signal: AbortSignal): Promise<ModelAnswer>;
  /**
   * The provider's own count of a request's tokens, where it is free. Answers within some two seconds.
   * @returns undefined where there is none, or it fails; @throws on abort whatever the signal's reason is
   */
  count?(request: ModelRequest, signal: AbortSignal): Promise<number | undefined>;
}

export interface ModelRequest {
  readonly target: ModelTarget;
  readonly system: string;
  /** Here, files carry their bytes as `data:` URLs. */
  readonly messages: readonly Message[];
  readonly tools: readonly ToolSpec[];
  /** The tools are listed, so that the request's beginning stays the same for the cache, but may not be called. */
  readonly noCalls?: boolean;
  readonly maxOutputTokens: number;
  /** Changes of the body that this server needs. */
  readonly fieldEdits?: readonly FieldEdit[];
  /** Groups requests with a common prefix at the provider: the session's id. */
  readonly cacheKey: string;
  readonly deadlines: Deadlines;
  /** Our estimate of the request, in tokens. */
  readonly estimatedTokens?: number;
  /** How long a piece of the answer may be held back now, in ms, so that it is passed on with those that follow; default: not at all. */
  readonly gatherMs?: () => number;
}

export type ModelDelta =
  | { readonly type: "text" | "reasoning"; readonly text: string }
  /** A tool call has begun to arrive. */
  | { readonly type: "tool-call"; readonly toolName: string }
  /** A piece of the arguments of the call that began last. */
  | { readonly type: "tool-input"; readonly text: string }
  /** Bytes arrive, but nothing to show for a while: the model's thinking is hidden. Never between two pieces of text or a call. */
  | { readonly type: "thinking" };

export interface ModelAnswer {
  /** In the order in which it came; empty reasoning left out. */
  readonly content: readonly AssistantPart[];
  readonly finish: "stop" | "tool-calls" | "length" | "content-filter" | "error" | "other";
  /** Why it ended, in the provider's own words, masked; absent if they say no more than `finish`. */
  readonly reason?: string;
  /** Absent if the provider's figures are missing, zero or absurd. */
  readonly usage: StepUsage | undefined;
  /** The call's cost as a router reports it, in USD. */
  readonly costUsd?: number;
  /** The tier of service that answered and is billed, if one was asked for and the provider reports it. */
  readonly tier?: string;
  /** A summary of the thoughts was requested, and the provider does not give one to this account. */
  readonly summaryRefused?: true;
  /** Names of tools that the provider refused and that were left out. */
  readonly refusedTools?: readonly string[];
  /** Parts of the conversation that the provider refused and that were left out. */
  readonly refusedParts?: readonly RefusedPart[];
  /** The window in which the server runs the model, if it is smaller than the target's; and what to tell a person about it. */
  readonly served?: { readonly contextWindow: number; readonly message: string };
  readonly firstTokenMs: number;
  readonly durationMs: number;
}

export interface RefusedPart {
  /** A file's; `thoughts` are what the provider alone can read of earlier answers, a `field` is one of the request's settings. */
  readonly mediaType: string;
  readonly filename?: string | undefined;
  /** The provider's own words. */
  readonly why: string;
  /** It was refused just now, and not lately. */
  readonly isNew: boolean;
}

/**
 * Classes of provider failures, each handled in its own way:
 * `overflow` compact · `rate-limit`, `unavailable`, `silent` retry · `malformed`, `too-long` one more try ·
 * `rejected`, `credentials`, `quota`, `not-found` end, or the next model of `fallback` takes over.
 */
export type ModelErrorClass =
  | "overflow"
  | "rate-limit"
  | "unavailable"
  | "silent"
  | "too-long"
  | "malformed"
  | "rejected"
  | "credentials"
  /** The account is used up. */
  | "quota"
  | "not-found";

export interface ModelErrorFields {
  readonly class: ModelErrorClass;
  readonly status?: number;
  /** How long the provider asked to wait. */
  readonly retryAfterMs?: number;
  /** For an overflow: the largest request, in tokens, that the provider names. */
  readonly servedWindow?: number | undefined;
  /** Whether a part of the answer had arrived before the failure. */
  readonly heard?: boolean | undefined;
  /** It should pass, but a request that does not fit is refused in the same words. */
  readonly mayBeOverflow?: boolean | undefined;
  /** For an overflow: the server was asked for its window. */
  readonly isAsked?: boolean | undefined;
  readonly cause?: unknown;
}

/** Whether the request itself was refused, so that a changed one may be accepted; not once a part of an answer has arrived. */
export function isRefusal(error: unknown): error is ModelError {
  return error instanceof ModelError && !error.heard && ["rejected", "not-found"].includes(error.class);
}

export class ModelError extends Error {
  override readonly name = "ModelError";
  readonly class: ModelErrorClass;
  readonly status: number | undefined;
  readonly retryAfterMs: number | undefined;
  readonly servedWindow: number | undefined;
  readonly heard: boolean;
  readonly mayBeOverflow: boolean;
  readonly isAsked: boolean;

  /** @param message the provider's text, masked and at most 1,000 characters */
  constructor(message: string, fields: ModelErrorFields) {
    super(message, { cause: fields.cause });
    this.class = fields.class;
    this.status = fields.status;
    this.retryAfterMs = fields.retryAfterMs;
    this.servedWindow = fields.servedWindow;
    this.heard = fields.heard === true;
    this.mayBeOverflow = fields.mayBeOverflow === true;
    this.isAsked = fields.isAsked === true;
  }
}
