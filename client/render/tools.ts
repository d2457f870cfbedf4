/** One tool call as a line, and its last output if it failed. Pure. */
import type { EventData } from "../../activities/store/event.ts";
import type { Look, Style } from "../console/output.ts";
import { duration, lastLines, oneLine, present } from "../console/format.ts";

const EXCERPT_LINES = 5;

const marks: Record<string, { readonly mark: string; readonly look: Look }> = {
  completed: { mark: "✓", look: "green" },
  error: { mark: "✗", look: "red" },
  interrupted: { mark: "■", look: "yellow" },
  unknown: { mark: "?", look: "yellow" },
};

export function resultLines(
  data: EventData["llm:tool-result"],
  about: string,
  style: Style,
  columns: number,
): string[] {
  const failedCommand = data.exitCode !== null && data.exitCode !== 0;
  const kind = failedCommand && data.outcome === "completed" ? "error" : data.outcome;
  const { mark, look } = marks[kind] ?? { mark: "?", look: "yellow" };
  const facts = present<string>(
    failedCommand && `exit ${data.exitCode}`,
    (data.outcome === "interrupted" || data.outcome === "unknown") && data.outcome,
    duration(data.durationMs),
    data.truncated && "output cut",
  ).join(" · ");
  const what = callText(data.name, about, columns - facts.length - 6, style);
  const first = `  ${style(look, mark)} ${what}  ${style("dim", facts)}`;
  if (kind === "completed") return [first];
  // The first line already shows the exit code.
  const ending = data.excerpt.replace(/\[exit code \d+\]\s*$/, "");
  const excerpt = lastLines(ending, EXCERPT_LINES, columns - 6);
  return [first, ...excerpt.map((text) => style("dim", `    │ ${text}`))];
}

/** @param ms how long the call has been running */
export function waitingLine(
  { name, about }: { readonly name: string; readonly about: string },
  ms: number,
  style: Style,
  columns: number,
): string {
  const since = `running for ${duration(ms)}`;
  return `  ${style("cyan", "…")} ${callText(name, about, columns - since.length - 6, style)}  ${style("dim", since)}`;
}

function callText(name: string, about: string, room: number, style: Style): string {
  const short = oneLine(about, Math.max(10, room - name.length - 1));
  return short === "" ? style("bold", name) : `${style("bold", name)} ${short}`;
}
