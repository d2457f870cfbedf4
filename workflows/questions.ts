/** Waiting for people: state of the run, never an activity. Asking and settling are two short activities around it. */
import type { RunToolInput, ServerAsksFacts, ToolFacts } from "../activities/contract/calls.ts";
import { CancellationScope, condition } from "@temporalio/workflow";
import type { CallFacts } from "../activities/contract/activities.ts";
import {
  readAnswer,
  type AskedPerson,
  type NotifyInput,
  type ReadAnswer,
  type SettledQuestion,
  type Settlement,
} from "../activities/contract/questions.ts";
import { lasted, mayMove, MovesOn, unanswered, type OpenQuestion, type WaitingCall } from "./asking.ts";
import { enterPhase, optionsOf, setSearchAttributes, showDetails, type Run, announceStop } from "./run.ts";
import { titled } from "./presentation.ts";
import { perform } from "./proxies.ts";
import { allOpen, askedForLater, tellAnswer } from "./later-questions.ts";
import { hasNewVersion } from "./versions.ts";

/** Takes an answer, or returns why it is refused, as a text for its sender. */
export async function takeAnswer(run: Run, message: unknown): Promise<ReadAnswer> {
  const { asking } = run;
  // At once if that is so: a message that arrived together with the answer came after it, and would withdraw the question.
  if (asking.storing > 0) await condition(() => asking.storing === 0);
  const open = allOpen(run);
  const answer = readAnswer(open, message);
  const question = answer.ok ? open.find(({ id }) => id === answer.id) : undefined;
  if (answer.ok && question) {
    question.settlement = answer.settlement;
    if (run.state.later.some((other) => other === question)) tellAnswer(run, question, answer.settlement);
  }
  return answer;
}

/** Why an answer cannot be taken; undefined if it can, or if that is not known yet. */
export function answerRefusal(run: Run, message: unknown): string | undefined {
  const { asking } = run;
  const answer = readAnswer(allOpen(run), message);
  return answer.ok || asking.storing > 0 ? undefined : answer.reason;
}

/**
 * A person wrote a message, which is not an answer and grants nothing, but must not wait behind a question; so open questions are
 * withdrawn. A question about a limit stays open: without a higher limit no step could read the message. One about a budget is asked
 * again if that still has no room.
 */
export function withdrawForMessage(run: Run): void {
  run.asking.messages += 1;
  const stays = ({ budget }: OpenQuestion) => budget !== undefined && budget.limit !== "budget";
  for (const question of allOpen(run).filter((question) => !stays(question)))
    question.settlement = { how: "withdrawn", why: "said" };
}

/** Asks about a call and waits. @returns its facts if that ended it; undefined if it must be run */
export async function askAbout(
  run: Run,
  { call, asked: before }: Pick<WaitingCall, "call" | "asked">,
  input: RunToolInput,
): Promise<ToolFacts | undefined> {
  const asks = call.by === "person" ? "asks" : asksFor(input);
  const settled = await ask(run, call, input, { asks, before });
  return settled?.kind === "result" ? settled.facts : undefined;
}

/** Asks an MCP server's questions in order, and stops at the first that is not answered. */
export async function askForServer(
  run: Run,
  call: CallFacts,
  input: RunToolInput,
  { server, questions }: ServerAsksFacts,
): Promise<void> {
  for (const { id, about, isOptional } of questions) {
    const target = { ...input, about: "server", question: id } as const;
    const settled = await ask(run, { ...call, about }, target, { asks: `${server} asks` });
    const isLeftOut = isOptional === true && settled?.kind === "noted" && settled.how === "declined";
    if (settled?.kind === "noted" && settled.how !== "answered" && !isLeftOut) return;
  }
}

/**
 * `asks` is the title for the Web UI; `before` is the outcome if the previous run had already asked the question.
 * @returns how the question was settled; undefined if there was nothing to ask
 */
async function ask(
  run: Run,
  call: CallFacts,
  input: RunToolInput,
  { asks, before }: { readonly asks: string; readonly before?: WaitingCall["asked"] },
): Promise<SettledQuestion | undefined> {
  const { asking } = run;
  const { step, index } = input;
  const { messages } = asking;
  // A question that the previous run had asked is counted already.
  if (before === undefined) asking.storing += 1;
  const title = titled(`step ${step} · ${asks}`, call);
  const store = () => perform("askPerson", optionsOf(run), title, input).finally(() => (asking.storing -= 1));
  const toOpenQuestion = (reply: Extract<AskedPerson, { kind: "asked" }>): OpenQuestion => ({
    ...reply.question,
    index,
    askedAtMs: Date.now(),
    settlement:
      reply.settled ??
      before?.settlement ??
      (asking.messages > messages ? { how: "withdrawn", why: "said" } : undefined),
  });
  let latest = await store();
  if (latest.kind === "passed") return undefined;
  if (latest.kind === "later") return askedForLater(run, { ...latest, step, index });
  let question = toOpenQuestion(latest);
  let settlement = question.settlement ?? (await answerTo(run, question, before === undefined));
  while (settlement === ASK_AGAIN) {
    asking.storing += 1;
    latest = await store();
    if (latest.kind !== "asked") return undefined;
    question = toOpenQuestion(latest);
    settlement = question.settlement ?? (await answerTo(run, question, false));
  }
  const after = latest.settled ? "" : ` after ${lasted(Date.now() - question.askedAtMs)}`;
  const summary = titled(`step ${step} · ${settlement.how}${after}`, call);
  const { id } = question;
  const { about, question: named } = input;
  return perform("settleQuestion", optionsOf(run), summary, {
    step,
    index,
    about,
    question: named,
    id,
    settlement,
  });
}

const asksFor = ({ about }: RunToolInput) =>
  about === "egress" ? "asks for the network" : "asks for approval";

/** How long the end of a run waits for its notice. Chosen: five attempts. */
const NOTICE_MS = 30_000;

/** Runs in the background; only the end of a run waits for it, and only for a while. */
async function notify(run: Run, input: NotifyInput): Promise<void> {
  const summary = `notify: ${input.question === undefined ? "session ended" : `question ${input.question}`}`;
  await CancellationScope.nonCancellable(() => perform("notify", optionsOf(run), summary, input)).catch(
    () => undefined,
  );
}

/** Sends the notice that a run has ended, and waits for it at most `NOTICE_MS`. */
export async function notifyEnd(run: Run): Promise<void> {
  if (run.policy?.notifies !== true) return;
  let isDone = false;
  void notify(run, { event: "session:ended" }).then(() => (isDone = true));
  await condition(() => isDone, NOTICE_MS);
}

/** Instead of an answer: the question is not stored any more. */
export const ASK_AGAIN = "ask again";

/** For each open question: a restored database lacks its row, so that no one can see it. */
export function askAgain({ asking }: Run): void {
  for (const question of unanswered(asking)) question.isGone = true;
}

/** Waits for the answer. A timer is started only for a question whose default is used after some time. */
export async function answerTo(
  run: Run,
  question: OpenQuestion,
  isNew = true,
): Promise<Settlement | typeof ASK_AGAIN> {
  const { asking } = run;
  if (run.policy?.notifies && isNew) void notify(run, { event: "question:asked", question: question.id });
  asking.open.push(question);
  asking.busy -= 1;
  showDetails(run);
  let stays = false;
  try {
    const isBudget = question.kind === "budget";
    const isOver = () =>
      question.settlement !== undefined ||
      question.isGone === true ||
      asking.moves ||
      (isBudget && run.state.deadline !== undefined);
    if (question.expiresInMs === undefined) await condition(isOver);
    else await condition(isOver, question.expiresInMs);
    if (question.settlement === undefined && question.isGone === true) return ASK_AGAIN;
    stays = question.settlement === undefined && asking.moves;
    if (stays) throw new MovesOn();
    question.settlement ??=
      isBudget && run.state.deadline !== undefined
        ? { how: "withdrawn", why: "stopped" }
        : { how: "defaulted", why: "expired" };
    return question.settlement;
  } finally {
    asking.busy += 1;
    if (!stays) asking.open = asking.open.filter((other) => other !== question);
    showDetails(run);
    await asking.idle;
  }
}

/** Runs `body`. The session counts as waiting whenever only questions are left to do. */
export async function restingDuring<T>(run: Run, body: () => Promise<T>): Promise<T> {
  let isOver = false;
  const rests = restWhileWaiting(run, () => isOver);
  rests.catch(() => undefined);
  try {
    return await body();
  } finally {
    isOver = true;
    // Its failure is ignored: `body` itself reports what stopped it.
    await rests.catch(() => undefined);
  }
}

async function restWhileWaiting(run: Run, isOver: () => boolean): Promise<void> {
  const { asking } = run;
  const isIdle = () => asking.busy === 0 && unanswered(asking).length > 0;
  for (;;) {
    await condition(() => isOver() || isIdle());
    if (isOver()) return;
    asking.idle = rest(run, isIdle);
    await asking.idle;
    asking.idle = undefined;
    if (isIdle() && movesOn(run)) asking.moves = true;
    if (asking.moves) return;
  }
}

const movesOn = ({ asking, state }: Run) => mayMove(asking) && hasNewVersion(state.leftVersion);

async function rest(run: Run, isIdle: () => boolean): Promise<void> {
  const { phase } = run.state;
  run.status = "waiting";
  enterPhase(run, "waiting");
  if (run.policy?.searchAttributes) setSearchAttributes(run, "waiting");
  const scope = new CancellationScope();
  const resting = scope.run(() => waitAndPark(run)).catch(() => undefined);
  try {
    await condition(() => !isIdle() || movesOn(run));
  } finally {
    scope.cancel();
    announceStop();
    await resting;
    run.status = "active";
    enterPhase(run, phase);
    if (run.policy?.searchAttributes) setSearchAttributes(run, "active");
  }
}

/** A failure here changes nothing: the session waits nevertheless. */
async function waitAndPark(run: Run): Promise<void> {
  const { step } = run.state;
  const budget = unanswered(run.asking).find((question) => question.budget)?.budget;
  const about = budget === undefined ? { step } : { step, budget };
  await perform("markWaiting", optionsOf(run), `step ${step} · waits for a person`, about);
  const afterMs = run.policy?.parkAfterMs;
  if (afterMs === undefined) return;
  const summary = `step ${step} · park the sandbox after ${lasted(afterMs)}`;
  await perform("parkSandbox", optionsOf(run), summary, { ...about, afterMs });
  // The next call, or the next step, opens it again.
  run.state.sandbox = undefined;
  run.opening = undefined;
  showDetails(run);
}
