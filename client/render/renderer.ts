/**
 * A session's events for people: the model's text as it arrives, a line per tool, a line per step. Only appends, so
 * that a terminal, a pipe and a log show the same. A note never interrupts a sentence, but waits for its end.
 * Uses no clock: the time comes from events and ticks.
 */
import type { EventData, SessionEvent } from "../../activities/store/event.ts";
import type { Style } from "../console/output.ts";
import { doubtText, refusedText, REFUSED_SUMMARY } from "../console/doubt-text.ts";
import { contextText, harmlessLine, present } from "../console/format.ts";
import { dollars, duration, plural, tokens } from "../../activities/text/format.ts";
import {
  changedTools,
  missingText,
  compressedLine,
  endLines,
  queuedLine,
  sendersText,
  refusedLine,
  sandboxLine,
  startLine,
  delegateLines,
  gitLines,
  setupLines,
  resultLines,
  waitingLine,
} from "./lines.ts";
import { answeredLine, askedLines, withdrawnLine } from "./question-lines.ts";
import { PlainAnswer, type AnswerOutput, Words } from "./answers.ts";
import { Progress } from "./progress.ts";

/** A tool that takes longer is announced before it finishes, then reported again at this interval, in ms. */
const LONG_TOOL_MS = 3_000;
const REMIND_MS = 60_000;

const THROTTLED = {
  requestsPerMinute: "requests a minute",
  tokensPerMinute: "tokens a minute",
  concurrent: "requests at once",
} as const;
const PARKED = "the sandbox is saved and removed until the answer comes";
const WHY_SWITCHED = { fallback: "the first one failed", return: "the session's own model again" } as const;

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

type Show = { [Type in SessionEvent["type"]]: (event: SessionEvent, data: EventData[Type]) => void };

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
    // An unknown event of a newer version must not stop the watch.
    const show = this.#show[event.type] as ((event: SessionEvent, data: unknown) => void) | undefined;
    show?.(event, event.data);
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

  /** Prints a line, after the current sentence if one is unfinished. */
  #aside(text: string): void {
    this.#held.push(text);
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

  #byOther(by: string | undefined): string {
    return by === undefined || by === this.#owner ? "" : ` (${harmlessLine(by, 80)})`;
  }

  #warn(text: string): void {
    this.#aside(this.#style("yellow", this.#hints(text)));
  }

  #retried(event: SessionEvent): void {
    this.#attemptShown = event.attempt;
    const dropped = this.#words.reset() ? "; its text so far is dropped" : "";
    this.note(this.#style("yellow", `↻ step ${event.step} again, attempt ${event.attempt}${dropped}`));
  }

  #isRetry(event: SessionEvent): boolean {
    return event.step === this.#stepShown && event.attempt > this.#attemptShown;
  }

  #stepLine(event: SessionEvent, data: EventData["step:started"]): void {
    if (this.#isRetry(event)) return this.#retried(event);
    const dropped = this.#words.reset();
    if (event.step === this.#stepShown) {
      if (dropped) this.note(this.#style("yellow", `↻ step ${event.step} again; its text so far is dropped`));
    } else {
      const { costUsd, waiting } = this.#progress;
      const parts = present(
        data.window !== undefined && contextText(data.estimatedInput, data.window),
        costUsd !== undefined && dollars(costUsd),
        waiting.size > 0 && this.#style("magenta", `${plural(waiting.size, "message")} waiting`),
      );
      this.note(`\n${this.#style("bold", `step ${event.step}`)}  ${this.#style("dim", parts.join(" · "))}`);
    }
    this.#stepShown = event.step;
    this.#attemptShown = event.attempt;
  }

  readonly #show: Show = {
    "session:started": (event, data) => {
      this.#stepShown = 0;
      this.#owner = data.owner ?? this.#owner;
      for (const text of startLine(event, data, this.#style, this.#columns)) this.note(text);
    },
    "step:started": (event, data) => this.#stepLine(event, data),
    "llm:thinking": (event, { hidden }) => {
      if (this.#isRetry(event)) this.#retried(event);
      if (hidden) this.note(this.#style("dim", "thinking: the provider is at work, but shows nothing yet"));
    },
    "llm:chunk": (event, data) => {
      if (event.step === this.#stepShown && event.attempt < this.#attemptShown) return;
      if (data.chunkType === "text") this.#words.text(data.text);
      if (data.chunkType === "reasoning") this.#words.reasoning(data.text);
    },
    "llm:response": (_event, data) => {
      this.#words.whole(data.content, data.reasoning);
      this.#lastText = data.content;
      if (data.usageDoubtful) this.#warn(`! ${doubtText(data.tokenUsage.input)}`);
      if (data.summaryRefused) this.#warn(`! ${REFUSED_SUMMARY}`);
      if (data.refusedTools) this.#warn(`! ${refusedText(data.refusedTools)}`);
      this.#words.reset();
    },
    "llm:tool-call": () => undefined,
    "llm:tool-result": (_event, data) => {
      const about = this.#progress.calls.get(data.callId)?.about ?? "";
      for (const text of resultLines(data, about, this.#style, this.#columns)) this.note(text);
    },
    "instructions:loaded": (_event, { path }) =>
      this.note(this.#style("dim", `  instructions ${harmlessLine(path, 200)}`)),
    "skill:opened": (_event, { name }) => this.note(this.#style("dim", `  skill ${harmlessLine(name, 80)}`)),
    "mcp:connected": (_event, { server, tools }) =>
      this.note(this.#style("dim", `  ${harmlessLine(server, 40)}: ${plural(tools, "tool")}`)),
    "mcp:login-needed": (_event, { command }) => this.#warn(`  → ${harmlessLine(command, 200)}`),
    "mcp:changed": (_event, data) => this.note(this.#style("dim", `  ${changedTools(data)}`)),
    "mcp:failed": (_event, { server, message }) =>
      this.#warn(`! MCP server ${harmlessLine(server, 40)}: ${harmlessLine(message, 300)}`),
    "llm:error": ({ at }, { message, class: kind, final, retryInMs }) => {
      const wait =
        retryInMs === null
          ? ""
          : `; again in ${duration(retryInMs)}${retryInMs < 60_000 ? "" : `, at ${new Date(Date.parse(at) + retryInMs).toISOString()}`}`;
      if (final) this.#finalError = message;
      const text = `${final ? "✗" : "↻"} model: ${harmlessLine(this.#hints(message), 500)} (${kind})${wait}`;
      this.note(this.#style(final ? "red" : "yellow", text));
    },
    "llm:throttled": (_event, { limit, waitMs }) =>
      this.#aside(
        this.#style(
          "yellow",
          `… waits for the model: limit of ${THROTTLED[limit]} reached; next try in ${duration(waitMs)}`,
        ),
      ),
    "llm:switched": (_event, { from, to, reason }) => {
      const why = reason === undefined || reason === "person" ? "" : ` (${WHY_SWITCHED[reason]})`;
      this.note(this.#style("cyan", `model: ${from} → ${to}${why}`));
    },
    "limit:near": (_event, { used, max }) =>
      this.#warn(`! ${dollars(used)} of the ${dollars(max)} that this session may cost`),
    "llm:unsupported-input": (_event, data) => this.#warn(`! ${harmlessLine(data.message, 500)}`),
    "context:compressing": () => undefined,
    "context:compressed": (_event, data) => this.note(compressedLine(data, this.#style)),
    "context:pruned": (_event, data) => {
      const what = plural(data.prunedCount, "old tool result");
      this.#aside(this.#style("cyan", `✂ ${what} hidden, ${tokens(data.savedTokens)} tokens freed`));
    },
    "message:queued": (_event, data) => {
      this.#senders.set(data.id, data.by);
      if (!this.#progress.knowsMessage(data.id)) this.#aside(queuedLine(data, this.#style, this.#columns));
    },
    "message:withdrawn": (_event, { by }) =>
      this.#aside(this.#style("magenta", `✉ a message was taken back${this.#byOther(by)}`)),
    "person:acted": (_event, { action, by }) => {
      if (by !== this.#owner)
        this.#aside(this.#style("magenta", `▸ ${harmlessLine(by, 80)}: ${harmlessLine(action, 40)}`));
    },
    "message:dequeued": (_event, data) => {
      const who = sendersText(data, this.#senders, this.#owner);
      this.note(`${this.#style("magenta", `▸ ${who}:`)} ${harmlessLine(data.text, this.#columns * 3)}`);
    },
    "sandbox:created": (_event, data) => this.#aside(sandboxLine(data, this.#style)),
    "sandbox:adopted": () => undefined,
    "sandbox:lost": (_event, data) => this.#warn(`! sandbox lost: ${harmlessLine(data.message, 200)}`),
    "sandbox:saved": () => undefined,
    "sandbox:left-out": (_event, data) => {
      const names = data.files.map(({ path }) => harmlessLine(path, 80)).join(", ");
      this.#warn(`! not saved in their present state (too large, too many or not readable): ${names}`);
    },
    "sandbox:saves-full": (_event, { maxBytes }) =>
      this.#warn(
        `! saved files take ${Math.round(maxBytes / 2 ** 20)} MiB, all that the session may store: from now on only the newest are kept`,
      ),
    "sandbox:removed": () => undefined,
    "sandbox:left": () => undefined,
    "sandbox:parked": () => this.#aside(this.#style("dim", PARKED)),
    "sandbox:not-closed": (_event, data) => this.#warn(`! ${harmlessLine(data.message, 300)}`),
    "setup:started": (_event, data) => this.note(setupLines.started(data, this.#style)),
    "setup:built": (_event, data) => this.note(setupLines.built(data, this.#style)),
    "setup:ended": (_event, data) => this.note(setupLines.ended(data, this.#style)),
    "egress:denied": (_event, data) => this.#warn(refusedLine(data)),
    "egress:allowed": (_event, { domain, by }) =>
      this.note(
        this.#style("cyan", `network: ${harmlessLine(domain, 253)} is allowed (${harmlessLine(by, 80)})`),
      ),
    "git:fetched": (_event, data) => this.note(gitLines.fetched(data, this.#style)),
    "git:pushed": (_event, data) => this.note(gitLines.pushed(data, this.#style)),
    "git:refused": (_event, data) => this.#warn(gitLines.refused(data)),
    "git:pull-request": (_event, data) => this.note(gitLines.pullRequest(data, this.#style)),
    "git:left-out": (_event, data) => this.#warn(gitLines.leftOut(data)),
    "question:asked": (event, data) => {
      for (const text of askedLines(event.sessionId, data, this.#style, this.#columns))
        this.note(this.#hints(text));
    },
    "question:answered": (_event, data) => this.note(answeredLine(data, this.#style, this.#columns)),
    "question:expired": (_event, data) => {
      this.#warn(`? ${data.id}: no answer came, so the default is used: ${harmlessLine(data.default, 200)}`);
    },
    "question:withdrawn": (_event, { id, reason }) => this.#aside(withdrawnLine(id, reason, this.#style)),
    "delegate:started": (_event, data) => this.note(delegateLines.started(data, this.#style)),
    "delegate:ended": (_event, data) => {
      this.note(delegateLines.ended(data, this.#style));
      const left = delegateLines.notApplied(data);
      if (left !== undefined) this.#warn(left);
    },
    "record:missing": (_event, data) => this.#warn(`! ${missingText(data)}`),
    "session:ended": (_event, data) => {
      const isShown =
        data.reason !== null && this.#finalError !== undefined && sameWords(data.reason, this.#finalError);
      for (const text of endLines(isShown ? { ...data, reason: null } : data, this.#style))
        this.note(this.#hints(text));
    },
  };
}

/** Whether two texts differ only by a leading error type or trailing advice. */
function sameWords(reason: string, message: string): boolean {
  const bare = reason.replace(/^\w+: /, "").trim();
  return bare !== "" && (message.includes(bare) || bare.includes(message.trim()));
}
