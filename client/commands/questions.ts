/** `longhaul questions` and `answer`: what sessions ask people, and what people answer. */
import { type Command, InvalidArgumentError } from "commander";
import {
  wantsWords,
  isQuestionId,
  type AnswerMessage,
  type AnswerNames,
} from "../../activities/contract/questions.ts";
import { listQuestions, type ListedQuestion } from "../../activities/store/questions.ts";
import { ago, harmlessLine, present } from "../console/format.ts";
import type { Output, Style } from "../console/output.ts";
import { unlessTableMissing } from "../lookup/unless-table-missing.ts";
import { commands, defaultLine, optionLines } from "../render/lines.ts";
import { requireSession, SESSION, withServices, withWorkingSession } from "../sessions/with-session.ts";
import { inAlternatives } from "../../activities/text/format.ts";
import { personName } from "../../activities/text/clean.ts";
import { usageError } from "../console/errors.ts";
import { positiveInteger } from "../sessions/flag-values.ts";
import { cleanAnswer, sendAnswer } from "../sessions/send-answer.ts";
import { untakenNote } from "../sessions/guidance.ts";
import { processStdin, readMessage } from "../sessions/task-input.ts";

interface QuestionsFlags {
  readonly all?: boolean;
  readonly json?: boolean;
}

/** `longhaul questions [ID]`: what sessions ask people. */
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
    !isOpen && question.answer !== null && `  → ${harmlessLine(question.answer, 400)}${by}`,
    isOpen &&
      question.default !== null &&
      defaultLine(question.default, question.expiresAt, style, DETAIL_CHARS),
    ...(isOpen ? commands(session, asks) : []).map((line) => `  ${style("cyan", line)}`),
  ).join("\n");
}

interface AnswerFlags {
  readonly option?: number;
  readonly allow?: boolean;
  readonly allowAlways?: boolean;
  readonly deny?: boolean;
  readonly decline?: boolean;
  readonly by?: string;
  readonly json?: boolean;
}

const FLAGS: AnswerNames = {
  text: "words",
  option: "--option N",
  actions: (...names) => inAlternatives(names.map((name) => `--${name}`)),
};

/** `longhaul answer ID [QUESTION] TEXT`: answers a session's question. */
export function answerCommand(command: Command, output: Output) {
  command
    .argument("<id>", SESSION)
    .argument("[answer...]", "the question's id if several are open, then the answer; - reads it from stdin")
    .option("--option <n>", "the option with this number, counted from 1", positiveInteger)
    .option("--allow", "let the call run, once")
    .option("--allow-always", "let it run, and others like it in this session")
    .option("--deny", "do not let it run; words after it are shown to the model")
    .option("--decline", "decline to answer")
    .option("--by <name>", "who answers", nameOf)
    .option("--json", "one JSON document");
  return async (reference: string, answerWords: readonly string[], flags: AnswerFlags) => {
    const [first = "", ...rest] = answerWords;
    const question = isQuestionId(first) ? first : undefined;
    const messageWords = question === undefined ? answerWords : rest;
    const text = messageWords.length === 0 ? undefined : await readMessage(messageWords, processStdin());
    const message = answerOf(flags, question, text);
    await withWorkingSession(reference, async (services, { id }) => {
      const answered = await sendAnswer(services, id, message, FLAGS);
      if (answered.warning !== undefined) output.note(`${answered.warning}\n`);
      if (flags.json === true) output.json({ id, ...answered });
      else if (answered.acknowledged)
        output.note(`${answered.question} of ${answered.session} is answered.\n`);
      else
        output.note(
          `${await untakenNote(services, answered.session, `the answer to ${answered.question}`)}\n`,
        );
    });
  };
}

function nameOf(name: string): string {
  if (personName(name) === name) return name;
  throw new InvalidArgumentError("Expected a name: one line of at most 100 characters.");
}

/** @throws ClientError (usage) if there is no answer, or more than one */
function answerOf(flags: AnswerFlags, question: string | undefined, text: string | undefined): AnswerMessage {
  const actions = (["allow", "allow-always", "deny", "decline"] as const).filter(
    (action) => flags[action === "allow-always" ? "allowAlways" : action] === true,
  );
  const [action] = actions;
  const choices = actions.length + (flags.option === undefined ? 0 : 1);
  const hasWords = text !== undefined && action !== "deny" && action !== "allow";
  if (choices + (hasWords ? 1 : 0) !== 1)
    throw usageError(
      choices === 0 ? "No answer was given." : "There is more than one answer.",
      "Give one of: TEXT, --option N, --allow, --allow-always, --deny [TEXT], --decline.",
    );
  return cleanAnswer({ question, text, option: flags.option, action, by: flags.by });
}
