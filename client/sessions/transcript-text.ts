/** A conversation as people read it in a terminal or a pager. Pure. */
import { firstString, harmless, plural, stamp, present } from "../console/format.ts";
import type { Style } from "../console/output.ts";
import { WHO, type TrajectoryStep } from "./trajectory.ts";

/** Last lines of a result that show its outcome; `--full` has all of them. */
const RESULT_LINES = 8;

export interface TranscriptOptions {
  readonly full: boolean;
  readonly style: Style;
  /** Who started the session: only others are named. */
  readonly owner?: string | null;
}

/** Each message under a line that says who, in which step and when; calls with the end of their results below. */
export function transcriptText(steps: readonly TrajectoryStep[], options: TranscriptOptions): string {
  return steps.map((step) => messageText(step, options)).join("\n");
}

function messageText(step: TrajectoryStep, options: TranscriptOptions): string {
  const { kind, step: number, compactedRound, by } = step.extra;
  const facts = present(
    Number(number) > 0 && `step ${String(number)}`,
    kind === "summary" && "summary",
    typeof by === "string" && by !== options.owner && harmless(by),
    stamp(new Date(step.timestamp)),
    typeof compactedRound === "number" && `in the summary of round ${compactedRound}`,
  );
  const { style } = options;
  const lines = present(
    `${style("bold", `── ${WHO[step.source]}`)} ${style("dim", facts.join(" · "))}`,
    step.message !== "" && harmless(step.message).trimEnd(),
    ...(step.tool_calls ?? []).flatMap((call) => callLines(step, call, options)),
  );
  return `${lines.join("\n")}\n`;
}

function callLines(
  step: TrajectoryStep,
  call: NonNullable<TrajectoryStep["tool_calls"]>[number],
  { full, style }: TranscriptOptions,
): string[] {
  const result = step.observation?.results.find((entry) => entry.source_call_id === call.tool_call_id);
  const outcome = typeof result?.extra["outcome"] === "string" ? result.extra["outcome"] : "no result";
  const about = harmless(firstString(call.arguments)).trim().split("\n");
  const head = `${style("cyan", "▸")} ${style("bold", call.function_name)} ${about.join("\n    ")}`;
  const body = harmless(result?.content ?? "")
    .trimEnd()
    .split("\n");
  const shown = full ? body : body.slice(-RESULT_LINES);
  const hidden = body.length - shown.length;
  return present(
    `${head}  ${style(outcome === "completed" ? "dim" : "red", outcome)}`,
    hidden > 0 && style("dim", `    │ … ${plural(hidden, "line")} above, shown by --full`),
    ...(result === undefined ? [] : shown.map((line) => style("dim", `    │ ${line}`))),
  );
}
