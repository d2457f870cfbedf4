/** Answers a question: the first answer that its workflow accepts counts. */
import { randomUUID } from "node:crypto";
import { WorkflowUpdateFailedError } from "@temporalio/client";
import {
  MAX_ANSWER_CHARS,
  MAX_SHOWN_CHARS,
  readAnswer,
  type AnswerMessage,
  type AnswerNames,
} from "../../activities/contract/questions.ts";
import { reasonOf } from "../../activities/contract/errors.ts";
import { senderOf } from "../../activities/contract/guidance.ts";
import { listQuestions, type ListedQuestion } from "../../activities/store/questions.ts";
import { askAgainIfGone } from "../../temporal/runs.ts";
import { until, askWithin } from "../../temporal/patience.ts";
import { answerQuestionUpdate, answerSignal } from "../../workflows/messages.ts";
import type { Services } from "../connect/connection.ts";
import { unlessGone } from "../connect/describe-run.ts";
import { requireAccess } from "../connect/readiness.ts";
import { clientSanitizer } from "../config/config.ts";
import { notPossible, usageError } from "../console/errors.ts";
import { shellWord } from "../console/format.ts";

/** How long to wait for a worker before the answer is left with Temporal. */
const REPLY_MS = 5_000;
/** How long a run may take to store a question again. */
const ASKED_MS = 10_000;

export interface Answered {
  /** The session that asked: this one, or one of its delegates. */
  readonly session: string;
  readonly question: string;
  /** False if no worker received it yet: Temporal keeps it until one does. */
  readonly acknowledged: boolean;
  /** Characters of a call that was allowed although watchers saw only its beginning. */
  readonly allowedUnseen?: number;
  /** The same in words, with what to do. */
  readonly warning?: string;
}

type Given = { readonly [Name in keyof AnswerMessage]?: AnswerMessage[Name] | undefined };

/** An answer, checked for its length. @throws ClientError (usage) if it is too long */
export function cleanAnswer({ question, text, option, action, by }: Given): AnswerMessage {
  if (text !== undefined && text.length > MAX_ANSWER_CHARS)
    throw usageError(
      `The answer has more than ${MAX_ANSWER_CHARS} characters: nothing was sent.`,
      "Say it as a message, which withdraws the question: longhaul say ID -",
    );
  const { clean } = clientSanitizer();
  const cleaned = (text: string | undefined) => (text === undefined ? undefined : clean(text));
  return {
    question,
    text: cleaned(text),
    option: typeof option === "string" ? clean(option) : option,
    action,
    by: cleaned(by),
  };
}

/**
 * @param names of a command's flags; default: of the fields that programs send
 * @throws ClientError (impossible) if the question is not open, or does not accept the answer, (missing) as `requireAccess`
 */
export async function sendAnswer(
  services: Services,
  id: string,
  answerMessage: AnswerMessage,
  names?: AnswerNames,
): Promise<Answered> {
  const signed = { ...answerMessage, by: answerMessage.by ?? senderOf({ by: services.user }).by };
  const { db } = services.store;
  const open = await openOrAskedAgain(services, id, signed.question);
  const all = await listQuestions(db, { of: id, all: true });
  const openQuestion = chosen(id, open, all, {
    question: signed.question,
    isCommand: names !== undefined,
  });
  // A wrong answer is reported even without a worker.
  const options =
    openQuestion.options === null ? {} : { options: openQuestion.options.map(({ label }) => label) };
  const answer = readAnswer(
    [{ id: openQuestion.id, kind: openQuestion.kind, ...options }],
    { ...signed, question: openQuestion.id },
    names,
  );
  if (!answer.ok) throw notPossible(`The answer was not accepted: ${answer.reason}.`);

  const { session, id: question } = openQuestion;
  await requireAccess(services, session);
  const message = { ...signed, question };
  const warning = unseenWarning(openQuestion, message);
  const client = await services.temporal.client();
  const handle = client.workflow.getHandle(session);
  const sent = await unlessGone(async () => {
    try {
      const updateId = `answer-${randomUUID()}`;
      await askWithin(client, REPLY_MS, () =>
        handle.executeUpdate(answerQuestionUpdate, { args: [message], updateId }),
      );
      return { session, question, acknowledged: true, ...warning };
    } catch (error) {
      if (error instanceof WorkflowUpdateFailedError) {
        throw notPossible(
          `The answer was not accepted: ${reasonOf(error.cause ?? error)}.`,
          `What is open: longhaul questions ${shellWord(id)}`,
        );
      }
      // No worker answered. If one receives both, the second finds the question answered.
      await handle.signal(answerSignal, message);
      return { session, question, acknowledged: false, ...warning };
    }
  });
  if (sent === undefined) throw notPossible(`${session} is no longer running; the answer was not accepted.`);
  return sent;
}

/** The open questions. If there is none that is meant, and the run waits for one that Postgres lacks, it asks again first. */
async function openOrAskedAgain(
  services: Services,
  id: string,
  question: string | undefined,
): Promise<ListedQuestion[]> {
  const { db } = services.store;
  const read = async () =>
    (await listQuestions(db, { of: id })).filter((open) => question === undefined || open.id === question);
  const [first] = await read();
  if (first === undefined) {
    const client = await services.temporal.client().catch(() => undefined);
    if (client !== undefined && (await askAgainIfGone({ db, client }, id)) === "asked")
      await until(async () => (await read()).length > 0, ASKED_MS);
  }
  return listQuestions(db, { of: id });
}

/** For who allowed a call of which only the beginning had been shown. */
export function unseenWarning(
  { session, kind, text }: Pick<ListedQuestion, "session" | "kind" | "text">,
  { action }: AnswerMessage,
): Pick<Answered, "allowedUnseen" | "warning"> {
  const isAllowed = action === "allow" || action === "allow-always";
  if (kind !== "approval" || !isAllowed || text.length <= MAX_SHOWN_CHARS) return {};
  return {
    allowedUnseen: text.length,
    warning: `Warning: the call that you allowed has ${text.length} characters, of which only the beginning was shown while it waited. All of it: longhaul questions ${shellWord(session)} --all. To stop it, interrupt the session: longhaul interrupt ${shellWord(session)}`,
  };
}

const nameOf = (question: ListedQuestion, id: string): string =>
  question.session === id ? question.id : `${question.id} of ${question.session}`;

/** The question that is meant. @throws ClientError (impossible) */
function chosen(
  id: string,
  open: readonly ListedQuestion[],
  all: readonly ListedQuestion[],
  { question, isCommand }: { readonly question: string | undefined; readonly isCommand: boolean },
): ListedQuestion {
  const candidates = open.filter((candidate) => question === undefined || candidate.id === question);
  // Delegates number their steps separately, so ids may coincide: then this session's own question is meant.
  const [only] =
    candidates.length > 1 && question !== undefined
      ? candidates.filter(({ session }) => session === id)
      : candidates;
  if (only !== undefined && (candidates.length === 1 || question !== undefined)) return only;
  if (candidates.length > 1) {
    // Delegates number their steps separately, so the hint names the session that asked.
    const { session = id, id: first = "" } = candidates[0] ?? {};
    throw notPossible(
      `${candidates.length} questions of ${id} are open: ${candidates.map((candidate) => nameOf(candidate, id)).join(", ")}.`,
      isCommand
        ? `Say which one: longhaul answer ${shellWord(session)} ${shellWord(first)} …`
        : `Say which one, such as question ${first} of the session ${session}.`,
    );
  }
  const before = all.findLast((candidate) => question === undefined || candidate.id === question);
  if (before === undefined)
    throw notPossible(
      question === undefined ? `${id} has not asked anything.` : `${id} has no question ${question}.`,
    );
  const how = before.answer === null ? before.status : `${before.status}: ${before.answer}`;
  const by = before.by === null ? "" : ` by ${before.by}`;
  throw notPossible(
    `The question ${before.id} of ${id} is not open any more (${how}${by}).`,
    `Send it as a message: longhaul say ${shellWord(id)} "…"`,
  );
}
