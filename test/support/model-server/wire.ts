/** What passes through the model server, free of any wire's format. Types only. */
import type { DialectName } from "./dialects/dialect.ts";

/** OpenAI's Responses and chat completions, Anthropic's messages, Google's generateContent. */
export type WireApi = "responses" | "chat" | "messages" | "gemini";

/** One piece of a message. `bytes` of media is counted, its content is not kept. */
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

export interface ParsedRequest {
  readonly api: WireApi;
  readonly model: string;
  readonly stream: boolean;
  readonly system: string;
  readonly items: readonly WireItem[];
  readonly tools: readonly WireTool[];
  readonly maxOutputTokens: number | undefined;
  readonly cacheKey: string | undefined;
  /** The body as it came. */
  readonly raw: Readonly<Record<string, unknown>>;
  readonly headers: Readonly<Record<string, string>>;
  /** Size of the body. */
  readonly bytes: number;
  /** By the server's own tokenizer: what will be billed. */
  readonly inputTokens: number;
}

/** What the server answers. Pieces are sent in order; the ones that are not content act on the stream itself. */
export interface Reply {
  readonly parts?: readonly ReplyPart[];
  /** Default: by content. */
  readonly finish?: "stop" | "tool-calls" | "length" | "content-filter";
  /** Wins over the bill; `null` sends no usage at all. */
  readonly usage?: Partial<WireUsage> | null;
  /** Characters of one delta; default 200. */
  readonly chunkChars?: number;
  /** Pause between two deltas; default none. */
  readonly chunkDelayMs?: number;
  /** An answer that is no answer: sent instead of everything else. */
  readonly error?: HttpError;
  /** Before the response's headers: wait so long, never answer, or cut the connection. */
  readonly beforeHeaders?: number | "hang" | "drop";
}

export type ReplyPart =
  | { readonly type: "text"; readonly text: string }
  | { readonly type: "refusal"; readonly text: string }
  /** `encrypted: false` leaves the encrypted content out, as for a model that has none. */
  | { readonly type: "reasoning"; readonly text: string; readonly encrypted?: boolean }
  /** `arguments` as text is sent as it is, JSON or not. `cut` leaves the call unfinished. */
  | {
      readonly type: "call";
      readonly name: string;
      readonly arguments: unknown;
      readonly callId?: string;
      readonly cut?: boolean;
    }
  | { readonly type: "wait"; readonly ms: number }
  /** Says nothing more; the connection stays open. */
  | { readonly type: "hang" }
  /** Destroys the socket. */
  | { readonly type: "drop" }
  /** Ends the stream properly, but without the closing events. */
  | { readonly type: "end" }
  /** An error event within the 200 stream; nothing follows. */
  | { readonly type: "error"; readonly code?: string; readonly message: string }
  /** Bytes that are no event of the format. */
  | { readonly type: "garbage"; readonly text: string };

export interface WireUsage {
  readonly input: number;
  readonly output: number;
  readonly cached: number;
  readonly reasoning: number;
}

export interface HttpError {
  readonly status: number;
  /** As it is; where it is absent, `message` and `code` in the server's own form. */
  readonly body?: unknown;
  readonly message?: string;
  readonly code?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** A limit of rate as the server has it, which asks for so many seconds; wins over all of the above. */
  readonly rateLimitSeconds?: number;
}

/** What a model of the server takes. */
export interface ServedModel {
  readonly window: number;
  readonly maxOutput?: number;
  readonly input?: readonly ("text" | "image" | "pdf")[];
  readonly reasoning?: boolean;
  /** False: its thoughts are not shown to this account, whose organisation is not verified. */
  readonly summaries?: false;
  /** Gemini 3 and later: calls carry a signature that must come back. */
  readonly signatures?: boolean;
}

export interface ModelServerOptions {
  /** Default: any free port. */
  readonly port?: number;
  /** Decides the answer; what it throws becomes a 500 with its message. */
  readonly reply: (request: ParsedRequest) => Reply | Promise<Reply>;
  readonly models: Readonly<Record<string, ServedModel>>;
  readonly countTokens: (text: string) => number;
  /** The only key that is let in; `null`: none is asked for; default: any that is not empty. */
  readonly apiKey?: string | null;
  /** A client hung up before its answer was whole. */
  readonly onAbort?: (served: ServedRequest) => void;
  /** The server that is played; default: the four wires as their owners document them. */
  readonly dialect?: DialectName;
  /** Nothing is said, headers neither, before so much time has passed: a local server that reads its prompt. */
  readonly prefillMs?: number;
}

/** One request as it went. Times are `Date.now()`. */
export interface ServedRequest {
  /** Absent where the request was refused before it could be read. */
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
