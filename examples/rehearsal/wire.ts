/** What the rehearsal reads from a request and writes in an answer. Types only. */

type Part = { readonly type: "text"; readonly text: string } | { readonly type: "image" | "file" };

/** One entry of the conversation, flat and in order, as the Responses API has it. */
export type WireItem =
  | { readonly type: "message"; readonly role: "user" | "assistant"; readonly parts: readonly Part[] }
  | { readonly type: "call"; readonly callId: string }
  | { readonly type: "result"; readonly callId: string; readonly parts: readonly Part[] }
  | { readonly type: "reasoning" | "reference" };

export interface ParsedRequest {
  readonly system: string;
  readonly items: readonly WireItem[];
  /** The tools that may be called now. */
  readonly tools: readonly unknown[];
  readonly cacheKey: string | undefined;
}

export type ReplyPart =
  | { readonly type: "text" | "reasoning"; readonly text: string }
  | { readonly type: "call"; readonly name: string; readonly arguments: unknown; readonly callId: string };

export interface Reply {
  readonly parts: readonly ReplyPart[];
  /** Characters of one delta. */
  readonly chunkChars: number;
  /** Pause between two deltas. */
  readonly chunkDelayMs: number;
}
