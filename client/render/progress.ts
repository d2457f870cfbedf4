/** A session's state derived from its events, for status lines. Uses no clock. */
import type { EventData, SessionEvent } from "../../activities/store/event.ts";

export interface OpenCall {
  readonly key: string;
  readonly name: string;
  readonly about: string;
  /** ms since 1970, from the event. */
  readonly since: number;
}

export type Phase =
  | "opening"
  | "setting up"
  | "asking"
  | "thinking"
  | "writing"
  | "tools"
  | "compacting"
  | "waiting"
  | "ended";

export class Progress {
  readonly calls = new Map<string, OpenCall>();
  /** Ids of messages that no step has delivered yet. */
  readonly waiting = new Set<string>();
  /** Texts of questions that are open, by their ids. */
  readonly questions = new Map<string, string>();
  readonly #delivered = new Set<string>();
  /** Undefined until a price is known. */
  costUsd: number | undefined;
  step = 0;
  phase: Phase = "opening";
  /** When the run and the phase began, in ms since 1970. */
  startedAt: number | undefined;
  phaseSince: number | undefined;
  /** When the failed request is made again, in ms since 1970; undefined if none waits. */
  againAt: number | undefined;
  context: { readonly used: number; readonly window: number } | undefined;

  /** A step may deliver a message before its sender announces it; a message sent twice counts once. */
  knowsMessage(id: string): boolean {
    return this.waiting.has(id) || this.#delivered.has(id);
  }

  event(event: SessionEvent): void {
    const apply = this.#apply[event.type] as ((event: SessionEvent, data: unknown) => void) | undefined;
    apply?.(event, event.data);
  }

  #enter(phase: Phase, event: SessionEvent): void {
    this.againAt = undefined;
    if (this.phase === phase && this.phaseSince !== undefined) return;
    this.phase = phase;
    this.phaseSince = Date.parse(event.at);
  }

  readonly #apply: { [Type in SessionEvent["type"]]?: (event: SessionEvent, data: EventData[Type]) => void } =
    {
      "session:started": (event) => {
        this.startedAt = Date.parse(event.at);
        this.calls.clear();
        this.questions.clear();
        this.#enter("opening", event);
      },
      "setup:started": (event) => this.#enter("setting up", event),
      "setup:ended": (event) => this.#enter("waiting", event),
      "step:started": (event, data) => {
        this.step = event.step;
        if (data.window !== undefined) this.context = { used: data.estimatedInput, window: data.window };
        this.phaseSince = undefined;
        this.#enter("asking", event);
      },
      "llm:chunk": (event, data) =>
        this.#enter(data.chunkType === "reasoning" ? "thinking" : "writing", event),
      "llm:response": (event, data) => {
        if (data.costUsd !== null) this.costUsd = (this.costUsd ?? 0) + data.costUsd;
        this.context = { used: data.contextUsed, window: data.contextLimit };
        this.#enter("waiting", event);
      },
      "llm:error": (event, { retryInMs }) => {
        this.againAt = retryInMs === null ? undefined : Date.parse(event.at) + retryInMs;
      },
      "llm:tool-call": (event, { callId, index, name, about }) => {
        const key = `s${event.step}c${index}`;
        this.calls.set(callId, { key, name, about, since: Date.parse(event.at) });
        this.#enter("tools", event);
      },
      "llm:tool-result": (event, data) => {
        this.calls.delete(data.callId);
        if (this.calls.size === 0) this.#enter("waiting", event);
      },
      "context:compressing": (event) => this.#enter("compacting", event),
      "context:compressed": (event) => this.#enter("waiting", event),
      "message:queued": (_event, { id }) => {
        if (!this.#delivered.has(id)) this.waiting.add(id);
      },
      "message:withdrawn": (_event, { id }) => void this.waiting.delete(id),
      "message:dequeued": (_event, { ids }) => {
        for (const id of ids) {
          this.#delivered.add(id);
          this.waiting.delete(id);
        }
      },
      "question:asked": (_event, { id, text }) => void this.questions.set(id, text),
      "question:answered": (_event, { id }) => void this.questions.delete(id),
      "question:expired": (_event, { id }) => void this.questions.delete(id),
      "question:withdrawn": (_event, { id }) => void this.questions.delete(id),
      "session:ended": (event) => {
        this.calls.clear();
        this.questions.clear();
        this.#enter("ended", event);
      },
    };
}
