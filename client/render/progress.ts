/** A session's state derived from its events, and the one line that shows it: clock, step, running call, context, queue, cost. Uses no clock. */
import type { EventData, SessionEvent } from "../../activities/store/event.ts";
import stringWidth from "string-width";
import type { Style } from "../console/output.ts";
import { bar, clock, harmlessLine, present } from "../console/format.ts";
import { dollars, duration, percent } from "../../activities/text/format.ts";
import { fitted } from "../screen/wrap.ts";

export interface CallInProgress {
  readonly key: string;
  readonly name: string;
  readonly about: string;
  /** ms since 1970, from the event. */
  readonly since: number;
}

export type ProgressPhase =
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
  readonly calls = new Map<string, CallInProgress>();
  /** Ids of messages that no step has delivered yet. */
  readonly waiting = new Set<string>();
  /** Texts of questions that are open, by their ids. */
  readonly questions = new Map<string, string>();
  readonly #delivered = new Set<string>();
  /** Undefined until a price is known. */
  costUsd: number | undefined;
  step = 0;
  phase: ProgressPhase = "opening";
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

  #enter(phase: ProgressPhase, event: SessionEvent): void {
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

export interface StatusLine {
  readonly progress: Progress;
  /** The command's last output by the call's key. */
  readonly output: ReadonlyMap<string, string>;
  readonly nowMs: number;
  /** When the watch began: where the clock starts if the session has not begun. */
  readonly sinceMs: number;
  readonly columns: number;
  readonly style: Style;
}

/** On narrower terminals, the facts are shown as figures only, to leave room for the running call. */
const ROOMY_COLUMNS = 110;

const doing: Record<ProgressPhase, string> = {
  opening: "opening the session",
  "setting up": "setting the project up",
  asking: "waiting for the model",
  thinking: "the model thinks",
  writing: "the model writes",
  tools: "",
  compacting: "compacting the context",
  waiting: "next step",
  ended: "",
};

/** Fits into `columns`; the activity is cut first, then the rest. */
export function statusLine({ progress, output, nowMs, sinceMs, columns, style }: StatusLine): string {
  const { startedAt, step, context, waiting, costUsd } = progress;
  const begin = present(
    style("cyan", clock(nowMs - (startedAt ?? sinceMs))),
    step > 0 && style("bold", `step ${step}`),
  ).join(" ");
  const roomy = columns >= ROOMY_COLUMNS;
  const facts = present(
    context &&
      `${roomy ? `context ${bar(context.used, context.window, 8)} ` : ""}${percent(context.used, context.window)}`,
    waiting.size > 0 && style("magenta", `✉ ${waiting.size}${roomy ? " waiting" : ""}`),
    costUsd !== undefined && dollars(costUsd),
  ).join(" · ");
  const ends = stringWidth(`${begin}    ${facts}`);
  const room = Math.max(12, columns - ends);
  const activity = harmlessLine(activityText(progress, output, nowMs, room), room);
  return fitted([begin, activity, style("dim", facts)].filter((part) => part !== "").join("  "), columns);
}

function activityText(
  progress: Progress,
  output: ReadonlyMap<string, string>,
  nowMs: number,
  room: number,
): string {
  const [question] = progress.questions.values();
  // Other open calls, including delegates' own, take precedence over the question.
  if (question !== undefined && progress.calls.size <= progress.questions.size)
    return `waits for you: ${harmlessLine(question, room)}`;
  const [call, ...others] = progress.calls.values();
  if (call === undefined && progress.againAt !== undefined && progress.againAt > nowMs)
    return `the provider answers again in ${duration(progress.againAt - nowMs)}`;
  if (call === undefined) {
    const since = progress.phaseSince === undefined ? 0 : nowMs - progress.phaseSince;
    const text = doing[progress.phase];
    return text === "" || since < 2_000 ? text : `${text} ${clock(since)}`;
  }
  const more = others.length > 0 ? ` (+${others.length})` : "";
  const last = output.get(call.key);
  const about = harmlessLine(call.about, Math.max(16, last === undefined ? room - 16 : Math.floor(room / 3)));
  return `${call.name} ${about} ${clock(nowMs - call.since)}${more}${last === undefined ? "" : ` › ${last}`}`;
}
