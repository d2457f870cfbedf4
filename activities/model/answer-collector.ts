/** Collects the stream's parts into one answer, in the order in which they began. Pure. */
import type { AssistantPart, ProviderData } from "../contract/message.ts";
import type { ModelAnswer, ModelDelta } from "./model.ts";
import type { KeptReasoning } from "./wires/chat-stream.ts";
import type { ProviderPart } from "./provider-model.ts";
import { carriesData, COMPATIBLE_KEY, ORIGIN_KEY } from "./request/reasoning.ts";

interface Spoken {
  readonly type: "text" | "reasoning";
  text: string;
  metadata: ProviderData | undefined;
}
interface Called {
  readonly type: "tool-call";
  readonly toolCallId: string;
  readonly toolName: string;
  /** Arguments as they arrive, while the call is not finished. */
  written: string;
  /** Set by the finished call. */
  call?: AssistantPart;
}

export class AnswerCollector {
  readonly #model: string;
  readonly #onDelta: (delta: ModelDelta) => void;
  readonly #entries: (Spoken | Called)[] = [];
  readonly #spoken = new Map<string, Spoken>();
  readonly #called = new Map<string, Called>();

  /** @param model of the request, stored with its reasoning */
  constructor(model: string, onDelta: (delta: ModelDelta) => void) {
    this.#model = model;
    this.#onDelta = onDelta;
  }

  /** Takes one part. @returns what it means for the deadlines: a piece of the answer, hidden thinking, or nothing */
  take(part: ProviderPart): "piece" | "thinking" | "nothing" {
    if (part.type === "text-start" || part.type === "text-delta" || part.type === "text-end") {
      return this.#speak("text", part);
    }
    if (part.type === "reasoning-start" || part.type === "reasoning-delta" || part.type === "reasoning-end") {
      return this.#speak("reasoning", part);
    }
    if (part.type === "tool-input-start") this.#begin(part.id, part.toolName);
    else if (part.type === "tool-input-delta") this.#write(part.id, part.delta);
    else if (part.type === "tool-call") this.#finish(part);
    else return "nothing";
    return "piece";
  }

  /** The content so far. Empty reasoning is left out unless it carries data for its provider. */
  content(kept: KeptReasoning = {}): AssistantPart[] {
    if (Object.keys(kept).length > 0) this.#keep(kept);
    return this.#entries.flatMap((entry): AssistantPart[] => {
      if (entry.type === "tool-call") return [entry.call ?? unfinished(entry)];
      const options = this.#signed(withoutNulls(entry.metadata));
      if (entry.type === "text")
        return entry.text === "" ? [] : [{ type: "text", text: entry.text, ...wrap(options) }];
      if (entry.text === "" && !carriesData(wrap(options))) return [];
      return [{ type: "reasoning", text: entry.text, ...wrap({ ...options, ...this.#origin() }) }];
    });
  }

  /** Keeps reasoning data that has to be sent back, even if no reasoning text has arrived. */
  #keep(kept: KeptReasoning): void {
    let entry = this.#entries.find((item): item is Spoken => item.type === "reasoning");
    if (entry === undefined) {
      entry = { type: "reasoning", text: "", metadata: undefined };
      this.#entries.unshift(entry);
    }
    entry.metadata = { ...entry.metadata, [COMPATIBLE_KEY]: { ...kept } };
  }

  /** Provider data is sent back to the model that made it, and to no other. */
  #signed(data: ProviderData | undefined): ProviderData | undefined {
    return data === undefined || Object.keys(data).length === 0 ? undefined : { ...data, ...this.#origin() };
  }

  #origin(): ProviderData {
    return { [ORIGIN_KEY]: { model: this.#model } };
  }

  #speak(
    type: Spoken["type"],
    part: { type: string; id: string; delta?: string; providerMetadata?: unknown },
  ): "piece" | "thinking" | "nothing" {
    const key = `${type} ${part.id}`;
    const begins = part.type === `${type}-start`;
    const entry = (begins ? undefined : this.#spoken.get(key)) ?? this.#open(type, key);
    if (part.providerMetadata !== undefined)
      entry.metadata = { ...entry.metadata, ...(part.providerMetadata as ProviderData) };
    if (begins) return type === "reasoning" ? "thinking" : "nothing";
    if (part.delta === undefined) return "piece";
    entry.text += part.delta;
    if (part.delta === "") return "nothing";
    this.#onDelta({ type, text: part.delta });
    return "piece";
  }

  #open(type: Spoken["type"], key: string): Spoken {
    const entry: Spoken = { type, text: "", metadata: undefined };
    this.#entries.push(entry);
    this.#spoken.set(key, entry);
    return entry;
  }

  #write(toolCallId: string, delta: string): void {
    const called = this.#called.get(toolCallId);
    if (called === undefined) return;
    called.written += delta;
    this.#onDelta({ type: "tool-input", text: delta });
  }

  #begin(toolCallId: string, toolName: string): Called {
    const called: Called = { type: "tool-call", toolCallId, toolName, written: "" };
    this.#entries.push(called);
    this.#called.set(toolCallId, called);
    this.#onDelta({ type: "tool-call", toolName });
    return called;
  }

  #finish(part: Extract<ProviderPart, { type: "tool-call" }>): void {
    // Two calls may have the same id: the second gets its own entry, or it would replace the first.
    const begun = this.#entries.find(
      (entry): entry is Called =>
        entry.type === "tool-call" && entry.toolCallId === part.toolCallId && entry.call === undefined,
    );
    const called = begun ?? this.#begin(part.toolCallId, part.toolName);
    called.call = {
      type: "tool-call",
      toolCallId: part.toolCallId,
      toolName: part.toolName,
      input: objectOrText(inputOf(part.input)),
      ...wrap(this.#signed(withoutNulls(part.providerMetadata as ProviderData | undefined))),
    };
  }
}

/** The finish as the loop needs it: if the answer has calls, they count, whatever the provider reports. */
export function finishOf(reason: string, content: readonly AssistantPart[]): ModelAnswer["finish"] {
  if (content.some((part) => part.type === "tool-call") && reason !== "length" && reason !== "content-filter")
    return "tool-calls";
  switch (reason) {
    case "stop":
    case "length":
    case "content-filter":
    case "error":
      return reason;
    default:
      return "other";
  }
}

/** A call that never ended, such as one cut off by the output limit: its text, which the tool runner answers. */
function unfinished(entry: Called): AssistantPart {
  return { type: "tool-call", toolCallId: entry.toolCallId, toolName: entry.toolName, input: entry.written };
}

/** A model's arguments, parsed. Text that is not JSON stays as it is, and so does JSON that would change an object's prototype. */
function inputOf(written: string): unknown {
  if (written.trim() === "") return {};
  try {
    return JSON.parse(written, (key, value: unknown) => {
      if (key === "__proto__") throw new SyntaxError("This key is not accepted.");
      return value;
    });
  } catch {
    return written;
  }
}

function objectOrText(input: unknown): unknown {
  if (typeof input === "string" || (typeof input === "object" && input !== null && !Array.isArray(input)))
    return input;
  return JSON.stringify(input ?? null);
}

function wrap(options: ProviderData | undefined): { providerOptions?: ProviderData } {
  return options === undefined || Object.keys(options).length === 0 ? {} : { providerOptions: options };
}

function withoutNulls(metadata: ProviderData | undefined): ProviderData | undefined {
  if (metadata === undefined) return undefined;
  const kept: ProviderData = {};
  for (const [provider, data] of Object.entries(metadata)) {
    const entries = Object.entries(data).filter(([, value]) => value !== null && value !== undefined);
    if (entries.length > 0) kept[provider] = Object.fromEntries(entries);
  }
  return kept;
}
