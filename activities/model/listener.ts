/** Listens to an answer while it streams: passes its pieces on, tells the watchdog of them, and remembers unfinished calls. */
import type { TextStreamPart, ToolSet } from "ai";
import type { ModelDelta } from "./model.ts";
import { LeadingThoughts } from "./thoughts-in-text.ts";
import { cutOff, type OpenCall } from "./to-answer.ts";
import type { Watchdog } from "./watchdog.ts";

export class Listener {
  /** By `performance.now()`; undefined until a piece of the answer has arrived. */
  firstTokenAt: number | undefined;
  readonly #onDelta: (delta: ModelDelta) => void;
  readonly #watchdog: Watchdog;
  readonly #thoughts = new LeadingThoughts();
  readonly #open = new Map<string, { toolCallId: string; toolName: string; input: string }>();

  constructor(onDelta: (delta: ModelDelta) => void, watchdog: Watchdog) {
    this.#onDelta = onDelta;
    this.#watchdog = watchdog;
  }

  /** Calls that have begun and have no end, in the order in which they began. */
  open(): OpenCall[] {
    return [...this.#open.values()];
  }

  /** @throws what the provider or the SDK reports instead of an answer */
  take(part: TextStreamPart<ToolSet>): void {
    if (part.type === "error") throw isCutOff(part.error) ? cutOff() : part.error;
    if (part.type === "reasoning-start") return this.#watchdog.thinking();
    if (part.type === "text-delta" || part.type === "reasoning-delta") {
      if (part.text === "") return;
      if (part.type === "text-delta") this.#thoughts.take(part.text).forEach(this.#onDelta);
      else this.#onDelta({ type: "reasoning", text: part.text });
    } else if (part.type === "tool-input-start") this.#begin(part.id, part.toolName);
    else if (part.type === "tool-input-delta") this.#write(part.id, part.delta);
    else if (part.type === "tool-call") {
      // Some packages give a call only when it is complete.
      if (!this.#open.has(part.toolCallId)) this.#begin(part.toolCallId, part.toolName);
      this.#open.delete(part.toolCallId);
    } else if (part.type === "text-end") this.#thoughts.end().forEach(this.#onDelta);
    else if (part.type !== "reasoning-end") return;
    this.firstTokenAt ??= performance.now();
    this.#watchdog.heard();
  }

  #begin(toolCallId: string, toolName: string): void {
    this.#open.set(toolCallId, { toolCallId, toolName, input: "" });
    this.#onDelta({ type: "tool-call", toolName });
  }

  #write(id: string, delta: string): void {
    const call = this.#open.get(id);
    if (call === undefined) return;
    call.input += delta;
    this.#onDelta({ type: "tool-input", text: delta });
  }
}

/** The chat package's words for a stream that ended early, and the SDK's for one that held nothing. Test: "ended without its last event". */
function isCutOff(error: unknown): boolean {
  return error instanceof Error && /ended without a finish (?:reason|chunk)/.test(error.message);
}
