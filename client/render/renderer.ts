/**
 * A session's events for people: the model's words as they come, one line a tool, one line a step. Only ever appends, so
 * that it reads the same on a terminal, in a pipe and in a log. Takes the time from events and ticks: no clock here.
 */
import type { EventData, SessionEvent } from "../../activities/store/event.ts";
import type { Style } from "../console/output.ts";
import { bar, dollars, duration, oneLine, percent, plural, tokens } from "../console/format.ts";
import { compressedLine, endLines, queuedLine, sandboxLine, startLine } from "./lines.ts";
import { resultLines, waitingLine } from "./tools.ts";
import { createWords } from "./words.ts";

export interface Renderer {
  readonly event: (event: SessionEvent) => void;
  /** Time passes: says which tools have been running for long. Only for events that happen now. */
  readonly tick: (nowMs: number) => void;
  /** A line of the client's own. */
  readonly note: (text: string) => void;
  /** The words of the last answer that were shown as they came. */
  readonly shownText: () => string;
}

/** A tool that takes longer is announced before it is done, then named again this often, in ms. */
const LONG_TOOL_MS = 3_000;
const REMIND_MS = 60_000;

interface OpenCall {
  readonly name: string;
  readonly about: string;
  readonly since: number;
  saidAt: number | undefined;
}

export function createRenderer(write: (text: string) => void, style: Style, columns: number): Renderer {
  const words = createWords(write, style);
  const open = new Map<string, OpenCall>();
  let costUsd = 0;
  let priced = false;
  const waiting = new Set<string>();
  const taken = new Set<string>();
  let stepShown = 0;
  let attemptShown = 0;
  let lastShown = "";

  const line = (text: string) => {
    words.pause();
    write(`${text}\n`);
  };
  const callOf = (data: { callId: string; name: string }) => open.get(data.callId);

  const stepLine = (event: SessionEvent, data: EventData["step:started"]) => {
    const again = event.step === stepShown && event.attempt > attemptShown;
    const voided = words.reset();
    if (again) {
      const lost = voided ? "; what it said so far is dropped" : "";
      line(style("yellow", `↻ step ${event.step} again, attempt ${event.attempt}${lost}`));
    } else if (event.step !== stepShown) {
      const parts = [
        `${bar(data.estimatedInput, data.limit)} ${percent(data.estimatedInput, data.limit)} of ${tokens(data.limit)}`,
        ...(priced ? [dollars(costUsd)] : []),
        ...(waiting.size > 0 ? [style("magenta", `${plural(waiting.size, "message")} waiting`)] : []),
      ];
      line(`\n${style("bold", `step ${event.step}`)}  ${style("dim", parts.join(" · "))}`);
    }
    stepShown = event.step;
    attemptShown = event.attempt;
  };

  const show: { [Type in SessionEvent["type"]]: (event: SessionEvent, data: EventData[Type]) => void } = {
    "session:started": (event, data) => {
      stepShown = 0;
      for (const text of startLine(event, data, style, columns)) line(text);
    },
    "step:started": stepLine,
    "llm:thinking": (event) => {
      if (event.step === stepShown && event.attempt > attemptShown) {
        attemptShown = event.attempt;
        const lost = words.reset() ? "; what it said so far is dropped" : "";
        line(style("yellow", `↻ step ${event.step} again, attempt ${event.attempt}${lost}`));
      }
    },
    "llm:chunk": (event, data) => {
      if (event.step === stepShown && event.attempt < attemptShown) return;
      if (data.chunkType === "text") words.text(data.text);
      else words.reasoning(data.text);
    },
    "llm:response": (_event, data) => {
      words.whole(data.content, data.reasoning);
      lastShown = data.content;
      if (data.costUsd !== null) {
        priced = true;
        costUsd += data.costUsd;
      }
      words.reset();
    },
    "llm:tool-call": (event, data) => {
      open.set(data.callId, { ...data, since: Date.parse(event.at), saidAt: undefined });
    },
    "llm:tool-result": (_event, data) => {
      const about = callOf(data)?.about ?? "";
      open.delete(data.callId);
      for (const text of resultLines(data, about, style, columns)) line(text);
    },
    "llm:error": (_event, data) => {
      const wait = data.retryInMs === null ? "" : `; again in ${duration(data.retryInMs)}`;
      const look = data.final ? "red" : "yellow";
      line(
        style(look, `${data.final ? "✗" : "↻"} model: ${oneLine(data.message, 300)} (${data.class})${wait}`),
      );
    },
    "llm:switched": (_event, data) => line(style("cyan", `model: ${data.from} → ${data.to}`)),
    "llm:unsupported-input": (_event, data) => line(style("yellow", `! ${oneLine(data.message, 200)}`)),
    "context:compressing": () => undefined,
    "context:compressed": (_event, data) => line(compressedLine(data, style)),
    "context:pruned": (_event, data) => {
      const what = plural(data.prunedCount, "old tool result");
      line(style("cyan", `✂ ${what} hidden, ${tokens(data.savedTokens)} tokens freed`));
    },
    "message:queued": (_event, data) => {
      // Who sends tells afterwards, so a quick step may have taken the message before; sent twice, it waits once.
      if (taken.has(data.id) || waiting.has(data.id)) return;
      waiting.add(data.id);
      line(queuedLine(data, style, columns));
    },
    "message:dequeued": (_event, data) => {
      for (const id of data.ids) {
        taken.add(id);
        waiting.delete(id);
      }
      line(`${style("magenta", "▸ you:")} ${oneLine(data.text, columns * 3)}`);
    },
    "sandbox:created": (_event, data) => line(sandboxLine(data, style)),
    "sandbox:adopted": () => undefined,
    "sandbox:lost": (_event, data) => line(style("yellow", `! sandbox lost: ${oneLine(data.message, 200)}`)),
    "sandbox:saved": () => undefined,
    "sandbox:left-out": (_event, data) => {
      const names = data.files.map(({ path }) => oneLine(path, 80)).join(", ");
      line(style("yellow", `! not saved as they are now (too large, too many or not readable): ${names}`));
    },
    "sandbox:removed": () => undefined,
    "sandbox:not-closed": (_event, data) => line(style("yellow", `! ${oneLine(data.message, 300)}`)),
    "session:ended": (_event, data) => {
      open.clear();
      for (const text of endLines(data, style)) line(text);
    },
  };

  return {
    event: (event) => {
      // An event of a newer version is no reason to stop watching.
      const handler = show[event.type] as ((event: SessionEvent, data: unknown) => void) | undefined;
      handler?.(event, event.data);
    },
    tick: (nowMs) => {
      for (const call of open.values()) {
        const due = call.saidAt === undefined ? call.since + LONG_TOOL_MS : call.saidAt + REMIND_MS;
        if (nowMs < due) continue;
        call.saidAt = nowMs;
        line(waitingLine(call.name, call.about, nowMs - call.since, style, columns));
      }
    },
    note: line,
    shownText: () => lastShown,
  };
}
