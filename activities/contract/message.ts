/**
 * The transcript's own words: what one stored message holds. Pure types: no I/O, nothing at run time.
 * The shape follows the AI SDK's model messages, so that sending one back is a copy, not a translation.
 */

/** Opaque data of a provider (item ids, encrypted reasoning), sent back exactly as it came. */
export type ProviderData = Record<string, Record<string, unknown>>;

interface TextPart {
  readonly type: "text";
  readonly text: string;
  readonly providerOptions?: ProviderData;
}

/** The model's reasoning, with what its provider needs to take it back. Never empty of both. */
export interface ReasoningPart {
  readonly type: "reasoning";
  readonly text: string;
  readonly providerOptions?: ProviderData;
}

/** An image or a file. `data` is `@blob:<sha256>` wherever it is stored; the bytes are put in when it is sent. */
export interface FilePart {
  readonly type: "file";
  readonly mediaType: string;
  readonly data: string;
  readonly filename?: string;
  /** Of a picture, in pixels: what it costs in tokens goes by them. Absent if its bytes do not say, or of before they were kept. */
  readonly width?: number;
  readonly height?: number;
  /** Of a PDF. */
  readonly pages?: number;
}

/** A request of the model to run a tool. `toolCallId` is the provider's, made unique within the session. */
export interface ToolCallPart {
  readonly type: "tool-call";
  readonly toolCallId: string;
  readonly toolName: string;
  /** The arguments as the model wrote them: an object, or the raw text if it was not JSON. */
  readonly input: unknown;
  readonly providerOptions?: ProviderData;
}

/** The answer to one tool call. */
export interface ToolResultPart {
  readonly type: "tool-result";
  readonly toolCallId: string;
  readonly toolName: string;
  readonly outcome: ToolOutcome;
  readonly text: string;
  /** Images the model sees with the text. */
  readonly files?: readonly FilePart[];
}

/** How a tool call ended. `unknown`: it was started, and its outcome is unknown. */
export type ToolOutcome = "completed" | "error" | "interrupted" | "unknown";

export type UserPart = TextPart | FilePart;
export type AssistantPart = TextPart | ReasoningPart | ToolCallPart;

/** The words of an answer, without reasoning and calls. */
export const answerText = (content: readonly AssistantPart[]): string =>
  content.map((part) => (part.type === "text" ? part.text : "")).join("");

/** What a row is, besides its role. `summary` stands for a compaction round, `nudge` and `wrap-up` are ours. */
export type MessageKind =
  | "system"
  | "task"
  | "guidance"
  | "answer"
  | "tool"
  | "summary"
  | "nudge"
  | "wrap-up"
  | "notice";

export type Message =
  | { readonly role: "user"; readonly content: readonly UserPart[] }
  | { readonly role: "assistant"; readonly content: readonly AssistantPart[] }
  | { readonly role: "tool"; readonly content: readonly [ToolResultPart] };

/** One row of the transcript as the context code sees it. */
export type StoredMessage = Message & {
  /** Position in the session, from 1, without holes once a step is complete. */
  readonly sequence: number;
  /** Order in the view: the sequence, except that a summary is right after the rows that it replaced. */
  readonly position: number;
  readonly step: number;
  /** Generation of the row; 1 if it is left out. */
  readonly epoch?: number;
  /** Which message of the step: `user`, `assistant`, `tool:0` …, `summary:3`, `nudge`. */
  readonly slot: string;
  readonly kind: MessageKind;
  /** Estimated tokens of the stored content. */
  readonly tokens: number;
  /** The step at which prune hid its content, if it did. */
  readonly prunedStep: number | undefined;
  /** Of an answer: the provider's bill for the request it answered, in tokens, if it can be trusted. */
  readonly usage?: { readonly input: number; readonly output: number; readonly cached?: number } | undefined;
  /** Of an answer: the model that gave it. */
  readonly model?: string | undefined;
  /** Of a result: paths of the instructions that it carries. */
  readonly notes?: readonly string[];
};
