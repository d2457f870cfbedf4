/**
 * A session's events for people: the model's words as they come, one line a tool, one line a step. Only ever appends, so
 * that it reads the same on a terminal, in a pipe and in a log. Takes the time from events and ticks: no clock here.
 */
import type { EventData, SessionEvent } from "../../activities/store/event.ts";
import type { Style } from "../console/output.ts";
import { bar, dollars, duration, oneLine, percent, plural, tokens } from "../console/format.ts";
import { compressedLine, endLines, queuedLine, sandboxLine, startLine } from "./lines.ts";
import { resultLines, waitingLine } from "./tools.ts";
import { Words } from "./words.ts";

/** A tool that takes longer is announced before it is done, then named again this often, in ms. */
const LONG_TOOL_MS = 3_000;
const REMIND_MS = 60_000;

const WHY_SWITCHED = { fallback: "it failed; this one steps in", return: "the session's own again" } as const;

interface OpenCall {
  readonly name: string;
  readonly about: string;
  readonly since: number;
  announcedAt: number | undefined;
}

type Show = { [Type in SessionEvent["type"]]: (event: SessionEvent, data: EventData[Type]) => void };

export class Renderer {
  readonly #write: (text: string) => void;
  readonly #style: Style;
  readonly #columns: number;
  readonly #words: Words;
  readonly #open = new Map<string, OpenCall>();
  readonly #waiting = new Set<string>();
  readonly #delivered = new Set<string>();
  /** Undefined until a price is known. */
  #costUsd: number | undefined;
  #stepShown = 0;
  #attemptShown = 0;
  #lastText = "";

  constructor(write: (text: string) => void, style: Style, columns: number) {
    this.#write = write;
    this.#style = style;
    this.#columns = columns;
    this.#words = new Words(write, style);
  }

  event(event: SessionEvent): void {
    // An event of a newer version is no reason to stop watching.
    const show = this.#show[event.type] as ((event: SessionEvent, data: unknown) => void) | undefined;
    show?.(event, event.data);
  }

  /** Time passes: says which tools have been running for long. Only for events that happen now. */
  tick(nowMs: number): void {
    for (const call of this.#open.values()) {
      const due = call.announcedAt === undefined ? call.since + LONG_TOOL_MS : call.announcedAt + REMIND_MS;
      if (nowMs < due) continue;
      call.announcedAt = nowMs;
      this.note(waitingLine(call.name, call.about, nowMs - call.since, this.#style, this.#columns));
    }
  }

  /** A line of the client's own. */
  note(text: string): void {
    this.#words.pause();
    this.#write(`${text}\n`);
  }

  /** The words of the last answer that were shown as they came. */
  shownText(): string {
    return this.#lastText;
  }

  #warn(text: string): void {
    this.note(this.#style("yellow", text));
  }

  #retried(event: SessionEvent): void {
    this.#attemptShown = event.attempt;
    const dropped = this.#words.reset() ? "; what it said so far is dropped" : "";
    this.#warn(`↻ step ${event.step} again, attempt ${event.attempt}${dropped}`);
  }

  #isRetry(event: SessionEvent): boolean {
    return event.step === this.#stepShown && event.attempt > this.#attemptShown;
  }

  #stepLine(event: SessionEvent, data: EventData["step:started"]): void {
    if (this.#isRetry(event)) return this.#retried(event);
    this.#words.reset();
    if (event.step !== this.#stepShown) {
      const parts = [
        `${bar(data.estimatedInput, data.limit)} ${percent(data.estimatedInput, data.limit)} of ${tokens(data.limit)}`,
        ...(this.#costUsd === undefined ? [] : [dollars(this.#costUsd)]),
        ...(this.#waiting.size > 0
          ? [this.#style("magenta", `${plural(this.#waiting.size, "message")} waiting`)]
          : []),
      ];
      this.note(`\n${this.#style("bold", `step ${event.step}`)}  ${this.#style("dim", parts.join(" · "))}`);
    }
    this.#stepShown = event.step;
    this.#attemptShown = event.attempt;
  }

  readonly #show: Show = {
    "session:started": (event, data) => {
      this.#stepShown = 0;
      for (const text of startLine(event, data, this.#style, this.#columns)) this.note(text);
    },
    "step:started": (event, data) => this.#stepLine(event, data),
    "llm:thinking": (event) => {
      if (this.#isRetry(event)) this.#retried(event);
    },
    "llm:chunk": (event, data) => {
      if (event.step === this.#stepShown && event.attempt < this.#attemptShown) return;
      if (data.chunkType === "text") this.#words.text(data.text);
      else this.#words.reasoning(data.text);
    },
    "llm:response": (_event, data) => {
      this.#words.whole(data.content, data.reasoning);
      this.#lastText = data.content;
      if (data.costUsd !== null) this.#costUsd = (this.#costUsd ?? 0) + data.costUsd;
      this.#words.reset();
    },
    "llm:tool-call": (event, data) => {
      this.#open.set(data.callId, { ...data, since: Date.parse(event.at), announcedAt: undefined });
    },
    "llm:tool-result": (_event, data) => {
      const about = this.#open.get(data.callId)?.about ?? "";
      this.#open.delete(data.callId);
      for (const text of resultLines(data, about, this.#style, this.#columns)) this.note(text);
    },
    "llm:error": (_event, { message, class: kind, final, retryInMs }) => {
      const wait = retryInMs === null ? "" : `; again in ${duration(retryInMs)}`;
      const text = `${final ? "✗" : "↻"} model: ${oneLine(message, 300)} (${kind})${wait}`;
      this.note(this.#style(final ? "red" : "yellow", text));
    },
    "llm:switched": (_event, { from, to, reason }) => {
      const why = reason === undefined || reason === "person" ? "" : ` (${WHY_SWITCHED[reason]})`;
      this.note(this.#style("cyan", `model: ${from} → ${to}${why}`));
    },
    "limit:near": (_event, { used, max }) =>
      this.note(
        this.#style("yellow", `! ${dollars(used)} of the ${dollars(max)} that this session may cost`),
      ),
    "llm:unsupported-input": (_event, data) => this.#warn(`! ${oneLine(data.message, 200)}`),
    "context:compressing": () => undefined,
    "context:compressed": (_event, data) => this.note(compressedLine(data, this.#style)),
    "context:pruned": (_event, data) => {
      const what = plural(data.prunedCount, "old tool result");
      this.note(this.#style("cyan", `✂ ${what} hidden, ${tokens(data.savedTokens)} tokens freed`));
    },
    "message:queued": (_event, data) => {
      // Who sends tells afterwards, so a quick step may have taken the message before; sent twice, it waits once.
      if (this.#delivered.has(data.id) || this.#waiting.has(data.id)) return;
      this.#waiting.add(data.id);
      this.note(queuedLine(data, this.#style, this.#columns));
    },
    "message:dequeued": (_event, data) => {
      for (const id of data.ids) {
        this.#delivered.add(id);
        this.#waiting.delete(id);
      }
      this.note(`${this.#style("magenta", "▸ you:")} ${oneLine(data.text, this.#columns * 3)}`);
    },
    "sandbox:created": (_event, data) => this.note(sandboxLine(data, this.#style)),
    "sandbox:adopted": () => undefined,
    "sandbox:lost": (_event, data) => this.#warn(`! sandbox lost: ${oneLine(data.message, 200)}`),
    "sandbox:saved": () => undefined,
    "sandbox:left-out": (_event, data) => {
      const names = data.files.map(({ path }) => oneLine(path, 80)).join(", ");
      this.#warn(`! not saved as they are now (too large, too many or not readable): ${names}`);
    },
    "sandbox:removed": () => undefined,
    "sandbox:not-closed": (_event, data) => this.#warn(`! ${oneLine(data.message, 300)}`),
    "session:ended": (_event, data) => {
      this.#open.clear();
      for (const text of endLines(data, this.#style)) this.note(text);
    },
  };
}
