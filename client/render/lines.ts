/** Sentences about events, tool calls and questions as lines of a terminal. */
import { wantsWords } from "../../activities/contract/questions.ts";
import type { EventData } from "../../activities/store/event.ts";
import { harmlessLine, lastLines, present, shellWord } from "../console/format.ts";
import { duration } from "../../activities/text/format.ts";
import type { Style, TextStyle } from "../console/output.ts";
import { questionTitle } from "../view/describe-event.ts";
import type { Sentence, Tone } from "../view/sentence.ts";

const TONE_STYLES: Readonly<Record<Tone, TextStyle>> = {
  quiet: "dim",
  notice: "cyan",
  people: "magenta",
  good: "green",
  warn: "yellow",
  bad: "red",
};

/** Lines of a sentence's detail that are shown, and their width. */
const DETAIL_LINES = 10;
const DETAIL_COLUMNS = 120;

/** Routine is indented. Figures follow the text, fainter. */
export function sentenceLines({ tone, mark, text, facts, detail = "" }: Sentence, style: Style): string[] {
  const indent = tone === "quiet" && mark === undefined ? "  " : "";
  const first = present(
    style(TONE_STYLES[tone], `${indent}${present(mark, text).join(" ")}`),
    facts && style("dim", facts),
  ).join("  ");
  const lines = lastLines(detail, DETAIL_LINES, DETAIL_COLUMNS);
  return [first, ...lines.map((line) => style(TONE_STYLES[tone], `  ${line}`))];
}

const EXCERPT_LINES = 5;

/** The end of a tool call, and its last output if it failed. @param about its first line or path */
export function resultLines(
  { tone, mark = "", text, facts = "", detail }: Sentence,
  about: string,
  style: Style,
  columns: number,
): string[] {
  const what = callText(text, about, columns - facts.length - 6, style);
  const first = `  ${style(TONE_STYLES[tone], mark)} ${what}  ${style("dim", facts)}`;
  const excerpt = lastLines(detail ?? "", EXCERPT_LINES, columns - 6);
  return [first, ...excerpt.map((line) => style("dim", `    │ ${line}`))];
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
  const short = harmlessLine(about, Math.max(10, room - name.length - 1));
  return short === "" ? style("bold", name) : `${style("bold", name)} ${short}`;
}

/** The question, its options, and the command to paste. */
export function askedLines(
  session: string,
  { id, kind, text, options, default: fallback, expiresAt }: EventData["question:asked"],
  style: Style,
  columns: number,
): string[] {
  const isAsk = wantsWords(kind);
  return present(
    "",
    style("bold", `? ${questionTitle(id, kind)}`),
    ...text.split("\n").map((line) => `  ${line}`),
    ...optionLines(options, style, columns),
    fallback !== null && defaultLine(fallback, expiresAt, style, columns),
    ...commands(session, { id, isAsk, hasOptions: options !== null, isPlan: kind === "plan" }).map(
      (line) => `  ${style("cyan", line)}`,
    ),
  );
}

type Options = EventData["question:asked"]["options"];

export const optionLines = (options: Options, style: Style, columns: number): string[] =>
  (options ?? []).map(
    ({ label, description }, index) =>
      `  ${style("bold", String(index + 1))} ${label}${description === undefined ? "" : style("dim", ` – ${harmlessLine(description, columns)}`)}`,
  );

export function defaultLine(text: string, expiresAt: string | null, style: Style, columns: number): string {
  const until = expiresAt === null ? "" : `, used if there is no answer by ${expiresAt}`;
  return style("dim", `  default: ${harmlessLine(text, columns)}${until}`);
}

export function commands(
  session: string,
  question: {
    readonly id: string;
    readonly isAsk: boolean;
    readonly hasOptions: boolean;
    readonly isPlan: boolean;
  },
): string[] {
  const answer = `longhaul answer ${shellWord(session)} ${shellWord(question.id)}`;
  if (question.isAsk) return [question.hasOptions ? `${answer} --option 1` : `${answer} "…"`];
  if (question.isPlan) return [`${answer} --allow`, `${answer} "what to change"`];
  return [`${answer} --allow`, `${answer} --deny "why"`];
}
