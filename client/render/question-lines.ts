/** Lines about questions to people. */
import { wantsWords } from "../../activities/contract/questions.ts";
import type { EventData } from "../../activities/store/event.ts";
import type { Style } from "../console/output.ts";
import { harmlessLine, present, shellWord } from "../console/format.ts";

/** The question, its options, and the command to paste. */
export function askedLines(
  session: string,
  { id, kind, text, options, default: fallback, expiresAt }: EventData["question:asked"],
  style: Style,
  columns: number,
): string[] {
  const isAsk = wantsWords(kind);
  const title = TITLES[kind] ?? "approval needed:";
  return present(
    "",
    style("bold", `? ${title} ${id}`),
    ...text.split("\n").map((line) => `  ${line}`),
    ...optionLines(options, style, columns),
    fallback !== null && defaultLine(fallback, expiresAt, style, columns),
    ...commands(session, { id, isAsk, hasOptions: options !== null, isPlan: kind === "plan" }).map(
      (line) => `  ${style("cyan", line)}`,
    ),
  );
}

const TITLES: Readonly<Record<string, string>> = {
  ask: "question",
  mcp: "question from an MCP server",
  plan: "plan to approve:",
  egress: "network access to approve:",
  budget: "limit reached:",
};

type Options = EventData["question:asked"]["options"];

export const optionLines = (options: Options, style: Style, columns: number): string[] =>
  (options ?? []).map(
    ({ label, description }, place) =>
      `  ${style("bold", String(place + 1))} ${label}${description === undefined ? "" : style("dim", ` – ${harmlessLine(description, columns)}`)}`,
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

const HOW: Readonly<Record<string, string>> = {
  answered: "answered",
  allowed: "allowed",
  "allowed-always": "allowed for the rest of the session",
  denied: "not allowed",
  declined: "not answered: declined",
  defaulted: "no person is asked, so the default is used",
};

export function answeredLine(
  { id, how, by, excerpt }: EventData["question:answered"],
  style: Style,
  columns: number,
): string {
  const words = excerpt === "" ? "" : `: ${harmlessLine(excerpt, columns * 2)}`;
  return `${style("magenta", `▸ ${id}`)} ${HOW[how] ?? how}${words}${by === null ? "" : style("dim", ` (${harmlessLine(by, 80)})`)}`;
}

const WHY: Readonly<Record<string, string>> = {
  said: "a message came instead of an answer",
  stopped: "the step was stopped",
  unattended: "no person is asked in this session",
  "too-many": "too many questions are open at once",
};

export const withdrawnLine = (id: string, reason: string, style: Style): string =>
  style("dim", `? ${id} is withdrawn: ${WHY[reason] ?? reason}`);
