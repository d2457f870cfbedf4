/** How a watched session is shown: to people, with a redrawn line if the terminal supports it, else by appending only. */
import { MarkdownAnswer, PlainAnswer } from "../render/answers.ts";
import { Progress, statusLine } from "../render/progress.ts";
import { Renderer } from "../render/renderer.ts";
import type { Output, TerminalSize } from "../console/output.ts";
import { LiveArea } from "../screen/live-area.ts";
import { renderMarkdown } from "../screen/markdown.ts";
import { WordWrap, wrapped } from "../screen/wrap.ts";
import type { FollowEnd } from "./follow.ts";
import type { SessionEvent } from "../../activities/store/event.ts";
import type { Services } from "../connect/connection.ts";

/** What is watched, and how. */
export interface Watch {
  /** Called first: from then on Ctrl-C detaches. */
  readonly begin?: () => Promise<unknown>;
  readonly services: Services;
  readonly sessionId: string;
  readonly afterSeq: number;
  readonly json: boolean;
  /** Whether the watch ends with exit code 7 if a question is open. */
  readonly exitOnQuestion?: boolean;
  readonly output: Output;
  /** Whether delegates are shown too. */
  readonly children?: boolean;
  /**
   * Lines to print after the outcome; default: how to get the files, and how to continue.
   * @param goOn the command that resumes it, if that can help
   */
  readonly closing?: (end: FollowEnd, goOn: string | undefined) => Promise<readonly string[]>;
}

export interface Show {
  event(event: SessionEvent, live: boolean): void;
  tick(): void;
  lastOutput(lines: ReadonlyMap<string, string>): void;
  note(text: string): void;
  trouble(message: string): void;
  end(end: FollowEnd): void;
  /** Ends the output, or hands it over. */
  close(): void;
}

const REDRAW_MS = 1_000;
/** Lines shown of a block that is still being written; the complete block is printed at its end. */
const PENDING_LINES = 8;

export function forPeople(output: Output): Show {
  return output.terminal !== undefined && output.isLive ? live(output, output.terminal) : appending(output);
}

/** Gives the same text in a pipe and in a log; on a terminal, breaks lines between words. */
function appending(output: Output): Show {
  const columns = output.terminal?.().columns;
  const renderer = new Renderer({
    write: columns === undefined ? output.show : (text) => output.show(wrapped(text, columns)),
    style: output.style,
    columns: output.columns,
    hints: output.hints,
    answer: new PlainAnswer(output.show, columns === undefined ? undefined : new WordWrap(columns)),
  });
  return {
    ...ofRenderer(renderer, output),
    event: (event) => renderer.event(event),
    tick: () => renderer.tick(Date.now()),
    lastOutput: () => undefined,
    close: () => undefined,
  };
}

function live(output: Output, size: () => TerminalSize): Show {
  const { style } = output;
  const area = new LiveArea(output.draw, size);
  const progress = new Progress();
  // One cell stays free: some terminals wrap when the last one is written.
  const columns = () => size().columns - 1;
  const print = (text: string) => area.print(wrapped(text, columns()));
  const options = () => ({ style, columns: columns() });
  const answer = new MarkdownAnswer((text) => area.print(text), options);
  const renderer = new Renderer({
    write: print,
    style,
    columns: output.columns,
    answer,
    progress,
    hints: output.hints,
  });
  let lastOutput: ReadonlyMap<string, string> = new Map();
  // The database's clock may differ from ours.
  let aheadMs = 0;
  const sinceMs = Date.now();
  const draw = () => {
    const nowMs = Date.now() + aheadMs;
    const status = statusLine({
      progress,
      output: lastOutput,
      nowMs,
      sinceMs: sinceMs + aheadMs,
      columns: columns(),
      style,
    });
    const room = Math.min(PENDING_LINES, size().rows - 2);
    area.show(progress.phase === "ended" ? [] : [...answer.pending().slice(-room), status]);
  };
  const timer = setInterval(draw, REDRAW_MS);
  timer.unref();
  return {
    ...ofRenderer(renderer, output),
    event: (event, isLive) => {
      if (isLive) aheadMs = Date.parse(event.at) - Date.now();
      renderer.event(event);
      // Earlier events are printed at once; drawing starts when all of them have been read.
      if (isLive) draw();
    },
    tick: draw,
    lastOutput: (lines) => {
      lastOutput = lines;
      draw();
    },
    close: () => {
      clearInterval(timer);
      area.show([]);
    },
  };
}

function ofRenderer(renderer: Renderer, output: Output): Pick<Show, "note" | "trouble" | "end"> {
  const { style } = output;
  return {
    note: (text) => renderer.note(text),
    trouble: (message) => renderer.note(style("yellow", `↻ tried again: ${message}`)),
    end: (end: FollowEnd) => {
      if (end.reason !== undefined) renderer.note(style("yellow", `\n■ ${end.status}: ${end.reason}`));
      // If both streams are on one screen, the text was just shown.
      const read = !end.isJson && output.sameScreen && renderer.shownText().trim() === end.result.trim();
      if (end.result === "" || read) return;
      const isLaidOut = output.isRich && !end.isJson;
      const text = isLaidOut ? renderMarkdown(end.result, { style, columns: output.columns }) : end.result;
      output.result(text.endsWith("\n") ? text : `${text}\n`);
    },
  };
}
