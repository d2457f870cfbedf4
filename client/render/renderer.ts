/**
 * A session's events for people: the model's text as it arrives, a line per tool, a line per step. Only appends, so
 * that a terminal, a pipe and a log show the same. A note never interrupts a sentence, but waits for its end.
 * Uses no clock: the time comes from events and ticks.
 */
import type { EventData, EventType, SessionEvent } from "../../activities/store/event.ts";
import type { Style } from "../console/output.ts";
import { present } from "../console/format.ts";
import { dollars, plural } from "../../activities/text/format.ts";
import { describeEvent } from "../view/describe-event.ts";
import type { Sentence } from "../view/sentence.ts";
import { askedLines, resultLines, sentenceLines, waitingLine } from "./lines.ts";
import { PlainAnswer, type AnswerOutput, Words } from "./answers.ts";
import { Progress } from "./progress.ts";

/** A tool that takes longer is announced before it finishes, then reported again at this interval, in ms. */
const LONG_TOOL_MS = 3_000;
const REMIND_MS = 60_000;

export interface RendererOptions {
  readonly write: (text: string) => void;
  readonly style: Style;
  readonly columns: number;
  /** How the model's text is shown; default: unchanged. */
  readonly answer?: AnswerOutput;
  readonly progress?: Progress;
  /** Adapts `longhaul COMMAND …` in the program's messages to this shell; default: unchanged. */
  readonly hints?: (text: string) => string;
}

/** Of the events that are more to a terminal than their sentences. */
type Show = {
  [Type in EventType]?: (event: SessionEvent, data: EventData[Type], sentences: readonly Sentence[]) => void;
};

export class Renderer {
  readonly #write: (text: string) => void;
  readonly #style: Style;
  readonly #columns: number;
  readonly #words: Words;
  readonly #progress: Progress;
  /** When each call was last reported as running. */
  readonly #announcedAt = new Map<string, number>();
  /** Who started the session: only others are named. */
  #owner: string | undefined;
  /** Who sent each message, by its id. */
  readonly #senders = new Map<string, string | undefined>();
  readonly #hints: (text: string) => string;
  #held: string[] = [];
  #stepShown = 0;
  #attemptShown = 0;
  #lastText = "";
  /** Error of a model call that is not retried: the end of the run need not repeat it. */
  #finalError: string | undefined;

  constructor({ write, style, columns, answer, progress, hints = (text) => text }: RendererOptions) {
    this.#write = write;
    this.#hints = hints;
    this.#style = style;
    this.#columns = columns;
    this.#progress = progress ?? new Progress();
    this.#words = new Words(answer ?? new PlainAnswer(write), (text) => write(`${text}\n`), style);
  }

  event(event: SessionEvent): void {
    const show = this.#show[event.type] as Show[EventType] as
      | ((event: SessionEvent, data: unknown, sentences: readonly Sentence[]) => void)
      | undefined;
    const sentences = describeEvent(event, { owner: this.#owner, senders: this.#senders });
    if (show === undefined) for (const sentence of sentences) this.#aside(sentence);
    else show(event, event.data, sentences);
    this.#progress.event(event);
    if (!this.#words.isOpen()) this.#flush();
  }

  /** Called regularly: reports tools that have been running for long. Only for live events. */
  tick(nowMs: number): void {
    for (const [id, call] of this.#progress.calls) {
      // This call waits for a person's answer, so it is not a slow tool.
      if (this.#progress.questions.has(call.key)) continue;
      const before = this.#announcedAt.get(id);
      if (nowMs < (before === undefined ? call.since + LONG_TOOL_MS : before + REMIND_MS)) continue;
      this.#announcedAt.set(id, nowMs);
      this.note(waitingLine(call, nowMs - call.since, this.#style, this.#columns));
    }
  }

  /** Prints one of the client's own lines. */
  note(text: string): void {
    this.#words.pause();
    this.#flush();
    this.#write(`${text}\n`);
  }

  /** Prints a sentence about an event, after the current one of the model if that is unfinished. */
  #aside(sentence: Sentence): void {
    this.#held.push(...this.#linesOf(sentence));
  }

  #say(sentences: readonly Sentence[]): void {
    for (const text of sentences.flatMap((sentence) => this.#linesOf(sentence))) this.note(text);
  }

  /** Advice names commands; the words of people stay as they are. */
  #linesOf(sentence: Sentence): string[] {
    const lines = sentenceLines(sentence, this.#style);
    return sentence.tone === "warn" || sentence.tone === "bad"
      ? lines.map((line) => this.#hints(line))
      : lines;
  }

  #flush(): void {
    const lines = this.#held;
    this.#held = [];
    for (const text of lines) this.#write(`${text}\n`);
  }

  /** The part of the last answer that was shown as it arrived. */
  shownText(): string {
    return this.#lastText;
  }

  #retried(event: SessionEvent): void {
    this.#attemptShown = event.attempt;
    const dropped = this.#words.reset() ? "; its text so far is dropped" : "";
    this.note(this.#style("yellow", `↻ step ${event.step} again, attempt ${event.attempt}${dropped}`));
  }

  #isRetry(event: SessionEvent): boolean {
    return event.step === this.#stepShown && event.attempt > this.#attemptShown;
  }

  #stepLine(event: SessionEvent, [sentence]: readonly Sentence[]): void {
    if (this.#isRetry(event)) return this.#retried(event);
    const dropped = this.#words.reset();
    if (event.step === this.#stepShown) {
      if (dropped) this.note(this.#style("yellow", `↻ step ${event.step} again; its text so far is dropped`));
    } else {
      const { costUsd, waiting } = this.#progress;
      const parts = present(
        sentence?.facts,
        costUsd !== undefined && dollars(costUsd),
        waiting.size > 0 && this.#style("magenta", `${plural(waiting.size, "message")} waiting`),
      );
      this.note(`\n${this.#style("bold", sentence?.text ?? "")}  ${this.#style("dim", parts.join(" · "))}`);
    }
    this.#stepShown = event.step;
    this.#attemptShown = event.attempt;
  }

  readonly #show: Show = {
    "session:started": (_event, { continued, owner, resetTo }, [first, ...rest]) => {
      this.#stepShown = 0;
      this.#owner = owner ?? this.#owner;
      const gap = continued || resetTo !== undefined ? "\n" : "";
      this.note(gap + this.#style("bold", present(first?.mark, first?.text).join(" ")));
      this.#say(rest);
    },
    "step:started": (event, _data, sentences) => this.#stepLine(event, sentences),
    "llm:thinking": (event, _data, sentences) => {
      if (this.#isRetry(event)) this.#retried(event);
      this.#say(sentences);
    },
    "llm:chunk": (event, data) => {
      if (event.step === this.#stepShown && event.attempt < this.#attemptShown) return;
      if (data.chunkType === "text") this.#words.text(data.text);
      if (data.chunkType === "reasoning") this.#words.reasoning(data.text);
    },
    "llm:response": (_event, data, sentences) => {
      this.#words.whole(data.content, data.reasoning);
      this.#lastText = data.content;
      for (const sentence of sentences) this.#aside(sentence);
      this.#words.reset();
    },
    // Reported once it is slow, or with its result.
    "llm:tool-call": () => undefined,
    "llm:tool-result": (_event, { callId }, sentences) => {
      const about = this.#progress.calls.get(callId)?.about ?? "";
      for (const sentence of sentences)
        for (const text of resultLines(sentence, about, this.#style, this.#columns)) this.note(text);
    },
    "llm:error": (_event, { message, final }, sentences) => {
      if (final) this.#finalError = message;
      this.#say(sentences);
    },
    // The status line says it, and what came of it has a line.
    "context:compressing": () => undefined,
    "message:queued": (_event, { id, by }, sentences) => {
      this.#senders.set(id, by);
      if (!this.#progress.knowsMessage(id)) for (const sentence of sentences) this.#aside(sentence);
    },
    "question:asked": (event, data) => {
      for (const text of askedLines(event.sessionId, data, this.#style, this.#columns))
        this.note(this.#hints(text));
    },
    "session:ended": (_event, { reason }, [first, ...rest]) => {
      const isShown =
        reason !== null && this.#finalError !== undefined && sameWords(reason, this.#finalError);
      this.note("");
      this.#say(present(first, ...(isShown ? [] : rest.map(indented))));
    },
  };
}

const indented = (sentence: Sentence): Sentence => ({ ...sentence, text: `  ${sentence.text}` });

/** Whether two texts differ only by a leading error type or trailing advice. */
function sameWords(reason: string, message: string): boolean {
  const bare = reason.replace(/^\w+: /, "").trim();
  return bare !== "" && (message.includes(bare) || bare.includes(message.trim()));
}
