/** The one line that is redrawn: clock, step, running call, context, queue, cost. Pure. */
import stringWidth from "string-width";
import type { Style } from "../console/output.ts";
import { bar, clock, dollars, duration, oneLine, percent, present } from "../console/format.ts";
import { fitted } from "../screen/wrap.ts";
import type { Phase, Progress } from "./progress.ts";

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

const doing: Record<Phase, string> = {
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
  const activity = oneLine(activityText(progress, output, nowMs, room), room);
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
    return `waits for you: ${oneLine(question, room)}`;
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
  const about = oneLine(call.about, Math.max(16, last === undefined ? room - 16 : Math.floor(room / 3)));
  return `${call.name} ${about} ${clock(nowMs - call.since)}${more}${last === undefined ? "" : ` › ${last}`}`;
}
