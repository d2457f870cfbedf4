/**
 * The transcript's types: what one stored message holds, and the files in it.
 * The shape follows the AI SDK's model messages, so that sending one back is a copy, not a translation.
 */
/** Opaque provider data (item ids, encrypted reasoning), sent back exactly as received. */
export type ProviderData = Record<string, Record<string, unknown>>;

interface TextPart {
  readonly type: "text";
  readonly text: string;
  readonly providerOptions?: ProviderData;
}

/** The model's reasoning, with what its provider needs to accept it back. At least one of the two is present. */
export interface ReasoningPart {
  readonly type: "reasoning";
  readonly text: string;
  readonly providerOptions?: ProviderData;
}

/** An image or a file. `data` is `@blob:<sha256>` wherever it is stored; the bytes are inserted when it is sent. */
export interface FilePart {
  readonly type: "file";
  readonly mediaType: string;
  readonly data: string;
  readonly filename?: string;
  /** For a picture: pixels, which determine its tokens. Absent if the bytes do not show them. */
  readonly width?: number;
  readonly height?: number;
  /** For a PDF: its page count. */
  readonly pages?: number;
}

/** The model's request to run a tool. `toolCallId` is the provider's, made unique within the session. */
export interface ToolCallPart {
  readonly type: "tool-call";
  readonly toolCallId: string;
  readonly toolName: string;
  /** The arguments as the model wrote them: an object, or the raw text if it was not JSON. */
  readonly input: unknown;
  /** What of the arguments was left out or converted: the call's result says so. */
  readonly remark?: string;
  /** Why the call cannot be made as it was written. */
  readonly unread?: string;
  readonly providerOptions?: ProviderData;
}

/** The result of one tool call. */
export interface ToolResultPart {
  readonly type: "tool-result";
  readonly toolCallId: string;
  readonly toolName: string;
  readonly outcome: ToolOutcome;
  readonly text: string;
  /** Images the model sees with the text. */
  readonly files?: readonly FilePart[];
}

/** How a tool call ended. `unknown`: it started, but its outcome was not seen. */
export type ToolOutcome = "completed" | "error" | "interrupted" | "unknown";

export type UserPart = TextPart | FilePart;
export type AssistantPart = TextPart | ReasoningPart | ToolCallPart;

/** The text of an answer, without reasoning and calls. */
export const answerText = (content: readonly AssistantPart[]): string =>
  content.map((part) => (part.type === "text" ? part.text : "")).join("");

/** A row's kind, besides its role. `summary` stands for a compaction round; `warning` and `wrap-up` are ours. */
export type MessageKind =
  | "system"
  | "task"
  | "guidance"
  | "answer"
  | "tool"
  | "summary"
  | "warning"
  | "wrap-up"
  | "notice";

export type Message =
  | { readonly role: "user"; readonly content: readonly UserPart[] }
  | { readonly role: "assistant"; readonly content: readonly AssistantPart[] }
  | { readonly role: "tool"; readonly content: readonly [ToolResultPart] };

/** One row of the transcript as the context code sees it. */
export type StoredMessage = Message & {
  /** Position in the session, from 1, without gaps once a step is complete. */
  readonly sequence: number;
  /** Order in the view: the sequence, except that a summary comes right after the rows that it replaced. */
  readonly position: number;
  readonly step: number;
  /** Generation of the row; 1 if absent. */
  readonly epoch?: number;
  /** Which message of the step: `user`, `assistant`, `tool:0` …, `summary:3`, `warning`. */
  readonly slot: string;
  readonly kind: MessageKind;
  /** Estimated tokens of the stored content. */
  readonly tokens: number;
  /** The step at which prune hid the content, if it did. */
  readonly prunedStep: number | undefined;
  /** For an answer: the usage that the provider reported for its request, in tokens, if it can be trusted. */
  readonly usage?: { readonly input: number; readonly output: number; readonly cached?: number } | undefined;
  /** For an answer: the model that gave it. */
  readonly model?: string | undefined;
  /** For a result: paths of the instruction files that it carries. */
  readonly notes?: readonly string[];
};

/** The files in a message. */
export function filesOf(message: Message): FilePart[] {
  if (message.role === "user") return message.content.filter((part) => part.type === "file");
  return message.role === "tool" ? [...(message.content[0].files ?? [])] : [];
}

/** A text file as the model reads it. The name is quoted, so that it cannot end the tag. */
export const fileText = (name: string, text: string) =>
  `<file name=${JSON.stringify(name)}>\n${text.replace(/\n$/, "")}\n</file>`;

/** @param replacements the replacement of each file: another file, or text; files without an entry stay */
export function withFiles(message: Message, replacements: ReadonlyMap<FilePart, FilePart | string>): Message {
  if (message.role === "user") {
    const content = message.content.map((part) => {
      const as = part.type === "file" ? replacements.get(part) : undefined;
      if (as === undefined) return part;
      return typeof as === "string" ? ({ type: "text", text: as } as const) : as;
    });
    return { role: "user", content };
  }
  return message.role === "tool"
    ? { role: "tool", content: [resultWith(message.content[0], replacements)] }
    : message;
}

function resultWith(
  result: ToolResultPart,
  replacements: ReadonlyMap<FilePart, FilePart | string>,
): ToolResultPart {
  if (!result.files) return result;
  const { files, ...rest } = result;
  const resultFiles: FilePart[] = [];
  let text = rest.text;
  for (const file of files) {
    const as = replacements.get(file) ?? file;
    if (typeof as === "string") text += `\n${as}`;
    else resultFiles.push(as);
  }
  return { ...rest, text, files: resultFiles.length > 0 ? resultFiles : undefined };
}
