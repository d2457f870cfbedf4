/** `longhaul answer ID [QUESTION] TEXT`: answers a session's question. */
import { type Command, InvalidArgumentError } from "commander";
import { isQuestionId, type AnswerMessage, type AnswerNames } from "../../activities/contract/questions.ts";
import { oneOf } from "../../activities/contract/one-of.ts";
import { personName } from "../../activities/contract/person-name.ts";
import { usageError } from "../console/errors.ts";
import type { Output } from "../console/output.ts";
import { positiveInteger } from "../sessions/flag-values.ts";
import { cleanAnswer, sendAnswer } from "../sessions/send-answer.ts";
import { untakenNote } from "../sessions/sent-notes.ts";
import { processStdin, readMessage } from "../sessions/task-input.ts";
import { SESSION, withWorkingSession } from "../sessions/with-session.ts";

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
  actions: (...names) => oneOf(names.map((name) => `--${name}`)),
};

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
  return async (reference: string, given: readonly string[], flags: AnswerFlags) => {
    const [first = "", ...rest] = given;
    const question = isQuestionId(first) ? first : undefined;
    const words = question === undefined ? given : rest;
    const text = words.length === 0 ? undefined : await readMessage(words, processStdin());
    const message = answerOf(flags, question, text);
    await withWorkingSession(reference, async (services, { id }) => {
      const answered = await sendAnswer(services, id, message, FLAGS);
      if (answered.allowedUnseen !== undefined)
        output.note(
          `Warning: the call that you allowed has ${answered.allowedUnseen} characters, of which only the beginning was shown while it waited. All of it: longhaul questions ${answered.session} --all. To stop it: longhaul interrupt ${answered.session}\n`,
        );
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
