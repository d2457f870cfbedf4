/** `longhaul questions [ID]`: what sessions ask people. */
import type { Command } from "commander";
import { wantsWords } from "../../activities/contract/questions.ts";
import { listQuestions, type ListedQuestion } from "../../activities/store/questions.ts";
import { ago, oneLine, present } from "../console/format.ts";
import type { Output, Style } from "../console/output.ts";
import { unlessTableMissing } from "../lookup/unless-table-missing.ts";
import { commands, defaultLine, optionLines } from "../render/question-lines.ts";
import { requireSession, SESSION, withServices } from "../sessions/with-session.ts";

interface QuestionsFlags {
  readonly all?: boolean;
  readonly json?: boolean;
}

export function questionsCommand(command: Command, output: Output) {
  command
    .argument("[id]", SESSION)
    .option("--all", "also those that were answered")
    .option("--json", "one JSON document");
  return (reference: string | undefined, { all, json }: QuestionsFlags) =>
    withServices(async (services) => {
      const of = reference === undefined ? undefined : (await requireSession(services, reference)).id;
      const questions = (await unlessTableMissing(() => listQuestions(services.store.db, { of, all }))) ?? [];
      if (json === true) output.json(questions, 2);
      else if (questions.length === 0) output.note("No session has an open question.\n");
      else {
        const blocks = questions.map((question) => questionText(question, output.style, new Date()));
        output.result(`${output.hints(blocks.join("\n\n"))}\n`);
      }
    });
}

/** Characters of an option's description, and of a default. */
const DETAIL_CHARS = 200;

function questionText(question: ListedQuestion, style: Style, now: Date): string {
  const { session, id, kind, status, text, options } = question;
  const isOpen = status === "open";
  const head = present(
    style("bold", `${session} ${id}`),
    kind !== "ask" && kind,
    `asked ${ago(new Date(question.asked), now)}`,
    !isOpen && status,
  ).join(" · ");
  const by = question.by === null ? "" : ` (${question.by})`;
  const asks = { id, isAsk: wantsWords(kind), hasOptions: options !== null, isPlan: kind === "plan" };
  return present(
    head,
    ...text.split("\n").map((line) => `  ${line}`),
    ...optionLines(options, style, DETAIL_CHARS),
    !isOpen && question.answer !== null && `  → ${oneLine(question.answer, 400)}${by}`,
    isOpen &&
      question.default !== null &&
      defaultLine(question.default, question.expiresAt, style, DETAIL_CHARS),
    ...(isOpen ? commands(session, asks) : []).map((line) => `  ${style("cyan", line)}`),
  ).join("\n");
}
