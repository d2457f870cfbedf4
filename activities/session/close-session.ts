/**
 * The outcome of a run: every open call gets a result, the session its status, watchers the end.
 *
 * Idempotency key: the session's row is ended once per run (compare-and-set). Side effects: rows and an event.
 * Heartbeat: by timer. Retry class: Postgres. Runs in a scope that cannot be cancelled.
 */
import { inScope, type ActivityScope } from "../runtime/activity-scope.ts";
import { cutChars } from "../text/cut.ts";
import type { ClosedSession, CloseSessionInput } from "../contract/activities.ts";
import { LIMIT_ERRORS } from "../contract/limits.ts";
import { answerText } from "../contract/message.ts";
import type { AgentDeps } from "../runtime/deps.ts";
import { enterToClose } from "../runtime/enter-session.ts";
import { unlessRecorded } from "../runtime/note-missing.ts";
import { interruptOpenCalls, endTasks } from "../runtime/interrupt-open-calls.ts";
import { lostRates, sessionCostUsd } from "../config/cost.ts";
import { checkAnswer } from "../config/output-schema.ts";
import { cleanDeep } from "../text/clean.ts";
import { lastRound } from "../store/compactions.ts";
import type { Queryable } from "../store/db.ts";
import type { NewEvent } from "../store/event.ts";
import { appendEvents, dropStoredChunks } from "../store/events.ts";
import { releaseAllMoney } from "../store/budgets.ts";
import { loadBill, recordLostCalls, totalUsage } from "../store/model-calls.ts";
import { isStepMissing } from "../store/missing-steps.ts";
import {
  toDeliveryState,
  findRepository,
  listPublications,
  recordPublication,
} from "../store/repositories.ts";
import { endSession, type Session } from "../store/sessions.ts";
import { closeWaits } from "../store/waits.ts";
import { reportEnd, type ReportedEnd } from "../runtime/telemetry/report.ts";
import { lastAnswer } from "../store/transcript.ts";
import { lockRun } from "../store/session-locks.ts";

const MAX_RESULT_CHARS = 2_000;
const NOTHING_USED = { input: 0, output: 0, cached: 0, reasoning: 0, calls: 0 };

export function createCloseSession(deps: AgentDeps) {
  return (input: CloseSessionInput): Promise<ClosedSession> =>
    inScope(deps, (scope) => closeSession(deps, scope, input));
}

async function closeSession(
  deps: AgentDeps,
  scope: ActivityScope,
  request: CloseSessionInput,
): Promise<ClosedSession> {
  const { db } = deps.store;
  // The session of this id is not this run's: neither is it ended, nor does its answer go to this run's result.
  if (request.error?.type === "IdTaken")
    return { status: request.status, steps: 0, rounds: 0, result: "", usage: NOTHING_USED };
  const entered = await enterToClose(deps, scope, request);
  const session = entered?.session;
  const step = entered?.step ?? request.step;
  const [answer, rounds] = await Promise.all([
    lastAnswer(db, scope.sessionId),
    lastRound(db, scope.sessionId),
  ]);
  const input = await unlessAnswerMissing(deps, scope, request, { ...entered, answerStep: answer?.step });
  const lastText = answer?.role === "assistant" ? answerText(answer.content) : "";
  const output = await outputIn(deps, session, input, lastText);
  const text = output === undefined ? lastText : JSON.stringify(output);
  if (session) await storeEnd(deps, scope, input, { session, step, rounds, text, output });
  return {
    status: input.status,
    limit: input.limit,
    steps: step,
    rounds,
    result: deps.idsOnly === true ? "" : cutChars(text, MAX_RESULT_CHARS),
    usage: await totalUsage(db, scope.sessionId),
    ...(session === undefined ? {} : { ...(await deliveryIn(db, session)), storedFor: scope.runId }),
    verified: input.verified,
    error: input === request ? undefined : ANSWER_MISSING,
  };
}

const ANSWER_MISSING = {
  type: "RecordMissing",
  message:
    'The model\'s last answer is missing: Postgres was restored from an older copy while the session ended. The older conversation and the files are kept. Send a message to continue, such as "Go on."',
};

/** A session is never completed without the answer that completed it. */
async function unlessAnswerMissing(
  deps: AgentDeps,
  scope: ActivityScope,
  input: CloseSessionInput,
  {
    session,
    step,
    answerStep,
  }: { readonly session?: Session; readonly step?: number; readonly answerStep: number | undefined },
): Promise<CloseSessionInput> {
  if (input.status !== "completed" || session === undefined || step === undefined) return input;
  if (answerStep === step) return input;
  // They may have gone since the activity began.
  await unlessRecorded(deps, scope, session, step);
  if (!(await isStepMissing(deps.store.db, session.id, step))) return input;
  return { ...input, status: "failed", error: ANSWER_MISSING };
}

interface Ending {
  readonly session: Session;
  readonly step: number;
  readonly rounds: number;
  /** The last answer; as JSON if it is `output`. */
  readonly text: string;
  readonly output: unknown;
}

/** Ends what is open and stores how the session ended, in one transaction, unless another run has the session. */
async function storeEnd(
  deps: AgentDeps,
  scope: ActivityScope,
  input: CloseSessionInput,
  ending: Ending,
): Promise<void> {
  const { session, text } = ending;
  const stored = await deps.store.db.transaction(async (tx) => {
    if (!(await lockRun(tx, session.id, scope.runId))) return undefined;
    const stopped = await interruptOpenCalls(tx, session.id, session.epoch);
    await dropStoredChunks(tx, session.id);
    await recordLostCalls(tx, session.id, lostRates(session.config));
    await releaseAllMoney(tx, session.id);
    return { stopped, end: await endRow(tx, { deps, runId: scope.runId, input }, ending) };
  });
  endTasks(deps, session, stored?.stopped ?? []);
  if (stored?.end !== undefined)
    reportEnd({ deps, scope, session }, stored.end, {
      "gen_ai.input.messages": session.task,
      "gen_ai.output.messages": text,
    });
}

interface Closing {
  readonly deps: AgentDeps;
  readonly runId: string;
  readonly input: CloseSessionInput;
}

/** @returns undefined if the session has ended already */
async function endRow(
  tx: Queryable,
  { deps, runId, input }: Closing,
  { session, step, rounds, text, output }: Ending,
): Promise<ReportedEnd | undefined> {
  const error = input.error && {
    type: input.error.type,
    message: cutChars(deps.sanitizer.clean(input.error.message), 1_000),
  };
  const limit = limitReached(input, session);
  const usage = await totalUsage(tx, session.id);
  const undelivered = await notDelivered(tx, { deps, runId, input }, session);
  const delivery = await deliveryIn(tx, session);
  const costUsd = sessionCostUsd(await loadBill(tx, session.id), session.config);
  const { status } = input;
  const row = await endSession(tx, session.id, runId, {
    status,
    result: text,
    error: error ?? limit,
    verified: input.verified,
  });
  if (!row) return undefined;
  await closeWaits(tx, session.id, status === "cancelled" ? "cancelled" : "ended");
  const { durationMs } = row;
  const figures = { steps: step, rounds, costUsd, durationMs };
  const data = {
    status,
    limit: input.limit,
    reason: error ? `${error.type}: ${error.message}` : (limit?.message ?? null),
    text,
    output,
    usage,
    ...figures,
    ...delivery,
    verified: input.verified,
  };
  await appendEvents(tx, session.id, session.epoch, [
    ...undelivered,
    ...notClosed(deps, input),
    { type: "session:ended", step, data },
  ]);
  return { status, model: session.config.model, ...figures, error: error?.type, ...usage };
}

/** The answer as JSON, if the session has a schema for it and the answer is valid; else undefined. */
async function outputIn(
  { sanitizer }: Pick<AgentDeps, "sanitizer">,
  session: Session | undefined,
  { status }: CloseSessionInput,
  text: string,
): Promise<unknown> {
  const schema = session?.config.outputSchema;
  if (schema === undefined || status !== "completed") return undefined;
  const checked = await checkAnswer(schema, text);
  // Parsing unescapes text, which may then contain a secret or characters that are not valid text.
  return checked.ok ? cleanDeep(checked.value, sanitizer.clean) : undefined;
}

/** Whether the work was pushed, and where; empty if the session has no repository. */
async function deliveryIn(db: Queryable, { id, config }: Session) {
  return config.repository === undefined ? {} : { delivery: toDeliveryState(await listPublications(db, id)) };
}

async function notDelivered(
  tx: Queryable,
  { deps: { sanitizer }, runId, input: { step, notDelivered: why } }: Closing,
  { id: sessionId, epoch }: Session,
): Promise<NewEvent[]> {
  const repository = why === undefined ? undefined : await findRepository(tx, sessionId);
  if (repository === undefined || why === undefined) return [];
  const { branch } = repository;
  const reason = cutChars(sanitizer.clean(why), 500);
  const refused = { kind: "push", ref: branch, commit: "", status: "refused", reason } as const;
  await recordPublication(tx, { ...refused, sessionId, epoch, step, runId });
  return [{ type: "git:refused", step, data: { branch, reason } }];
}

/** The stored error of a session that reached its cost limit or its deadline; the step limit has none. */
function limitReached(
  { limit, limitReason = "" }: Pick<CloseSessionInput, "limit" | "limitReason">,
  session: Session | undefined,
): { readonly type: string; readonly message: string } | undefined {
  if (limit === undefined) return undefined;
  if (limit === "deadline") {
    const message =
      "The run's deadline has come (limits.deadline). The conversation and the files are kept: send a message to continue.";
    return { type: LIMIT_ERRORS.deadline, message };
  }
  if (limit === "budget") {
    const message = `A budget of the operator's is used up. ${limitReason} The conversation and the files are kept: send a message then to continue.`;
    return { type: LIMIT_ERRORS.budget, message };
  }
  const maxUsd = session?.config.limits.maxCostUsd;
  const message = `The session has reached its cost limit (limits.maxCostUsd${maxUsd === undefined ? "" : `: $${maxUsd}`}). The conversation and the files are kept.`;
  return { type: LIMIT_ERRORS.cost, message };
}

function notClosed(
  { sanitizer }: Pick<AgentDeps, "sanitizer">,
  { step, notClosed: reason }: CloseSessionInput,
): NewEvent[] {
  if (reason === undefined) return [];
  const why = cutChars(sanitizer.clean(reason), 1_000);
  const message = `The sandbox was not closed (${why}): the files are kept as last saved, and may lack the last step's. A container that is left is removed later, or used again when the session is resumed.`;
  return [{ type: "sandbox:not-closed", step, data: { message } }];
}
