/** What passes through the model server, independent of the wire. Types only. */
import type { DialectName } from "./dialects/dialects.ts";

/** OpenAI's Responses and chat completions, Anthropic's messages, Google's generateContent. */
export type WireApi = "responses" | "chat" | "messages" | "gemini";

/** One piece of a message. Media is counted by `bytes`; its content is not kept. */
export type WirePart =
  | { readonly type: "text"; readonly text: string }
  | { readonly type: "image" | "file"; readonly mediaType: string; readonly bytes: number };

/**
 * One entry of the conversation, flat and in order, as the Responses API has it.
 * A chat message with text and calls becomes a message item and one call item for each call.
 */
export type WireItem =
  | { readonly type: "message"; readonly role: "user" | "assistant"; readonly parts: readonly WirePart[] }
  | { readonly type: "reasoning"; readonly id: string; readonly text: string; readonly encrypted?: string }
  | { readonly type: "call"; readonly callId: string; readonly name: string; readonly arguments: string }
  | { readonly type: "result"; readonly callId: string; readonly parts: readonly WirePart[] }
  | { readonly type: "reference"; readonly id: string };

export interface WireTool {
  readonly name: string;
  readonly description: string;
  readonly schema: unknown;
  readonly strict?: boolean;
}

export interface Conversation {
  readonly system: string;
  readonly items: readonly WireItem[];
  readonly tools: readonly WireTool[];
}

export interface ParsedRequest extends Conversation {
  readonly api: WireApi;
  readonly model: string;
  readonly stream: boolean;
  readonly maxOutputTokens: number | undefined;
  readonly cacheKey: string | undefined;
  /** The original body. */
  readonly raw: Readonly<Record<string, unknown>>;
  readonly headers: Readonly<Record<string, string>>;
  /** Size of the body. */
  readonly bytes: number;
  /** By the server's own tokenizer: what will be billed. */
  readonly inputTokens: number;
}

/** Before its tokens are counted. */
export type UncountedRequest = Omit<ParsedRequest, "inputTokens">;

/** The server's answer. Pieces are sent in order; those without content act on the stream itself. */
export interface Reply {
  readonly parts?: readonly ReplyPart[];
  /** Default: by content. */
  readonly finish?: "stop" | "tool-calls" | "length" | "content-filter";
  /** Overrides the bill; `null` sends no usage. */
  readonly usage?: Partial<WireUsage> | null;
  /** Characters of one delta; default 200. */
  readonly chunkChars?: number;
  /** Pause between two deltas; default none. */
  readonly chunkDelayMs?: number;
  /** An error instead of an answer. */
  readonly error?: HttpError;
  /** Before the response's headers: wait this long, never answer, or cut the connection. */
  readonly beforeHeaders?: number | "hang" | "drop";
}

export type ReplyPart =
  | { readonly type: "text"; readonly text: string }
  | { readonly type: "refusal"; readonly text: string }
  /** `encrypted: false` leaves the encrypted content out, as for a model that has none. */
  | { readonly type: "reasoning"; readonly text: string; readonly encrypted?: boolean }
  /** `arguments` as text is sent unchanged, JSON or not. `cut` leaves the call unfinished. */
  | {
      readonly type: "call";
      readonly name: string;
      readonly arguments: unknown;
      readonly callId?: string;
      readonly cut?: boolean;
    }
  | { readonly type: "wait"; readonly ms: number }
  /** Sends nothing more; the connection stays open. */
  | { readonly type: "hang" }
  /** Destroys the socket. */
  | { readonly type: "drop" }
  /** Ends the stream properly, but without the closing events. */
  | { readonly type: "end" }
  /** An error event within the 200 stream; nothing follows. */
  | { readonly type: "error"; readonly code?: string; readonly message: string }
  /** Bytes that are not an event of the format. */
  | { readonly type: "garbage"; readonly text: string };

export interface WireUsage {
  readonly input: number;
  readonly output: number;
  readonly cached: number;
  readonly reasoning: number;
}

export interface HttpError {
  readonly status: number;
  /** Sent unchanged; default: `message` and `code` in the server's own form. */
  readonly body?: unknown;
  readonly message?: string;
  readonly code?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** A rate limit in the server's own form, which asks for a wait in seconds; overrides all of the above. */
  readonly rateLimitSeconds?: number;
}

/** What a model of the server accepts. */
export interface ServedModel {
  readonly window: number;
  readonly maxOutput?: number;
  readonly input?: readonly ("text" | "image" | "pdf")[];
  readonly reasoning?: boolean;
  /** False: its thoughts are hidden from this account, whose organisation is not verified. */
  readonly summaries?: false;
  /** Gemini 3 and later: calls carry a signature that must come back. */
  readonly signatures?: boolean;
}

export interface ModelServerOptions {
  /** Default: any free port. */
  readonly port?: number | undefined;
  /** Decides the answer; what it throws becomes a 500 with its message. */
  readonly reply: (request: ParsedRequest) => Reply | Promise<Reply>;
  readonly models: Readonly<Record<string, ServedModel>>;
  readonly countTokens: (text: string) => number;
  /** The only accepted key; `null`: no key is required; default: any that is not empty. */
  readonly apiKey?: string | null | undefined;
  /** A client hung up before its answer was whole. */
  readonly onAbort?: (served: ServedRequest) => void;
  /** The server to play; default: the four wires as their owners document them. */
  readonly dialect?: DialectName | undefined;
  /** What it answers to a GET of another path; undefined: 404. */
  readonly documents?: ((path: string) => unknown) | undefined;
}

/** One request and its outcome. Times are `Date.now()`. */
export interface ServedRequest {
  /** Absent if the request was refused before it could be read. */
  request?: ParsedRequest;
  readonly receivedAt: number;
  status?: number;
  /** The refusal's text. */
  refused?: string;
  usage?: WireUsage;
  endedAt?: number;
  /** The client hung up before the answer was whole. */
  abortedAt?: number;
}

export interface ModelServer {
  /** Base URL for a client: `http://127.0.0.1:<port>/v1`, or as the dialect has it. */
  readonly url: string;
  readonly port: number;
  readonly log: readonly ServedRequest[];
  close(): Promise<void>;
}
