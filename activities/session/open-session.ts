/**
 * Opens a session, resumes it after it ended, or after its run was reset.
 *
 * Idempotency key: the session's id and the run's. Side effects: the session's row if no client prepared it, its run,
 * the messages that arrived before, events. Heartbeat: by timer. Retry class: Postgres. Cancel: nothing to undo.
 */
import { inScope, type ActivityScope } from "../runtime/activity-scope.ts";
import { toContextSize, toMeasure } from "../context/context-size.ts";
import { shorten } from "../text/cut.ts";
import type { StoredMessage } from "../contract/message.ts";
import type { OpenedSession, OpenSessionInput } from "../contract/activities.ts";
import type { AgentDeps } from "../runtime/deps.ts";
import { enterSession } from "../runtime/enter-session.ts";
import { fatal } from "../contract/failures.ts";
import { isDelegateId, isStartOf } from "../contract/session-ids.ts";
import { holdToStart } from "../runtime/hold-to-policy.ts";
import { interruptOpenCalls, endTasks } from "../runtime/interrupt-open-calls.ts";
import { buildPrefix, prefixShares, type Prefix } from "../context/request.ts";
import { cacheSeconds } from "../config/asked-model.ts";
import type { RunConfig } from "../config/agent-config.ts";
import type { RunPolicy } from "../contract/run-policy.ts";
import { toBranchName, type SessionGit } from "../config/git-settings.ts";
import { toRunPolicy } from "../config/run-policy.ts";
import { isSpent } from "../step/budget.ts";
import { storeMessages } from "../step/guidance.ts";
import { takeOwnTools } from "../step/catalogues.ts";
import { toolsToTake } from "../step/catalogues.ts";
import { lastRound } from "../store/compactions.ts";
import { retryFailed } from "../store/mcp.ts";
import { appendEvents } from "../store/events.ts";
import {
  hasRunOfChain,
  hasSession,
  idTaken,
  makeOrAdopt,
  mendSchedule,
  mendSession,
} from "../store/adopt-session.ts";
import type { Queryable } from "../store/db.ts";
import { chainStart, endedRunsOf, hasBegun, runInCharge, takeOver } from "../store/runs.ts";
import type { Standpoint } from "../store/lines.ts";
import { findSchedule } from "../store/batches.ts";
import { lastUsedStep } from "../store/missing-steps.ts";
import { restoreWindows } from "../store/session-settings.ts";
import type { Session } from "../store/sessions.ts";
import { isCacheExpired, spentUsd } from "../store/model-calls.ts";
import { findFollow, listFollowRounds } from "../store/follows.ts";
import { findRepository } from "../store/repositories.ts";
import { waitingGuidance } from "../store/guidance.ts";
import { MAX_NAMED, namedWaiting } from "../contract/guidance.ts";
import { reportContinued, reportStart } from "../runtime/telemetry/report.ts";
import { traceOf } from "../store/traces.ts";
import { loadView } from "../store/load-view.ts";
import { lockRun } from "../store/session-locks.ts";
import { endsWithAnswer } from "../store/transcript.ts";

export function createOpenSession(deps: AgentDeps) {
  return (input: OpenSessionInput): Promise<OpenedSession> =>
    inScope(deps, (scope) => openSession(deps, scope, input));
}

async function openSession(
  deps: AgentDeps,
  scope: ActivityScope,
  input: OpenSessionInput,
): Promise<OpenedSession> {
  const { db } = deps.store;
  await prepareRow(deps, scope.sessionId, input);
  const at = await standpointOf(deps, scope, input);
  const isContinued = input.continuedStep !== undefined;
  const entered = await claim(deps, scope, input, at);
  const step = at.step - 1;
  const session = await takeOwnTools(deps, entered, step === 0);
  if (input.keepsCalls !== true) await endOpenCalls(deps, scope, session, isContinued);
  if (session.catalogues !== undefined && !isContinued) await retryFailed(db, session.id);
  const prefix = buildPrefix(session, deps.tools);
  const policy = await policyOf(deps, scope, session, { prefix, isContinued });
  const [isExpired, rows, round, costUsd] = await Promise.all([
    policy.budget.returnTokens !== undefined &&
      at.phase === "resume" &&
      isCacheExpired(db, session.id, cacheSeconds(session.config)),
    loadView(db, session.id),
    lastRound(db, session.id),
    policy.maxCostUsd === undefined ? undefined : spentUsd(db, session.id),
  ]);
  if (!isContinued) await announceStart(deps, scope, session, { step, model: policy.model });
  const { over } = await storeMessages(deps, scope, { step, items: input.arrived ?? [] });
  const waiting = await waitingGuidance(db, session.id, MAX_NAMED);
  if (input.continuedFrom !== undefined)
    reportContinued({ deps, scope, session }, input.continuedFrom, { model: policy.model, steps: step });
  // A run that was continued as new or reset still makes its last step at the limit.
  const isFresh = at.phase === "resume" && !isContinued;
  const isDelegate = isFresh && session.parentId !== undefined;
  const isDone = isDelegate && waiting.length === 0 && (await endsWithAnswer(db, session.id, rows));
  return {
    policy,
    epoch: session.epoch,
    step,
    context: toContextSize(rows, toMeasure(session, prefix)),
    round,
    isCacheExpired: isExpired || undefined,
    otherModel: isOtherModels(rows, policy.model) ? true : undefined,
    costUsd: costUsd === undefined || policy.asks.atLimit !== true ? undefined : costUsd,
    isSpent: costUsd !== undefined && isFresh && isSpent(deps.policy, policy, costUsd) ? true : undefined,
    over,
    waiting: waiting.length > 0 ? namedWaiting(waiting) : undefined,
    isDone: isDone || undefined,
    ...sandboxOf(session),
  };
}

function isOtherModels(rows: readonly StoredMessage[], model: string): boolean {
  return (rows.findLast((row) => row.usage !== undefined)?.model ?? model) !== model;
}

/** Creates the session's row if no client did. */
async function prepareRow(
  deps: AgentDeps,
  id: string,
  { task, schedule, chain }: OpenSessionInput,
): Promise<void> {
  if (task === undefined && schedule === undefined) {
    if (!(await hasSession(deps.store.db, id))) throw nothingToStart(id);
    return;
  }
  // A run that was reset has the input of the first: its row may have been mended or given another model since.
  if (await hasRunOfChain(deps.store.db, id, chain)) return;
  if (task !== undefined) await prepareFromTask(deps, id, task);
  if (schedule !== undefined) await prepareScheduled(deps, id, schedule);
}

/** Temporal's Web UI copies the input of a client's session, which is empty, to another id ("Start Workflow Like This One"). */
const nothingToStart = (id: string) =>
  fatal(
    "NothingToStart",
    `Nothing was started: no session has the id ${id}, and the input names no task. To start a session, use the input {"task": "…"}, or run: longhaul start "…". To continue a session that has ended, start the workflow under that session's own id with the same empty input, or run: longhaul say ID "…"`,
  );

/** Makes this run the one that may write, and holds it to the operator's policy. */
async function claim(deps: AgentDeps, scope: ActivityScope, input: OpenSessionInput, at: Standpoint) {
  const { sessionId, runId } = scope;
  const takeover = await takeOver(deps, { sessionId, runId, chain: input.chain }, at);
  if (takeover !== "superseded" && input.continuedFrom === undefined)
    await deps.store.db.transaction(async (tx) => {
      if (!(await lockRun(tx, sessionId, runId))) return;
      await mendSession(tx, sessionId, deps.sanitizer.clean);
      await restoreWindows(tx, sessionId);
    });
  const entered = await enterSession(deps, scope, at);
  // What continues in a fresh history was allowed when it began.
  if (input.continuedFrom === undefined) await holdToStart(deps, entered, input.precedence);
  return entered;
}

/** The figures of the run: from the session's settings, its rows, and this worker. */
async function policyOf(
  deps: AgentDeps,
  scope: ActivityScope,
  session: Session,
  { prefix, isContinued }: { readonly prefix: Prefix; readonly isContinued: boolean },
): Promise<RunPolicy> {
  const takesTools = toolsToTake(session, !isContinued);
  return toRunPolicy(session.config, prefix.tokens, {
    prefix: prefixShares(prefix, session.tokenRatio?.ratio),
    ...(await gitOf(deps.store.db, session)),
    ...delegatesOf(deps, session),
    takesTools,
    ...(await traceFor(deps, scope, session)),
    ...workerFacts(deps),
  });
}

/**
 * Where a run begins. A run that continues the run in charge or resumes an ended session continues from the newest rows.
 * A reset to the start of an earlier run goes back to where that run began.
 */
async function standpointOf(
  deps: AgentDeps,
  scope: ActivityScope,
  input: OpenSessionInput,
): Promise<Standpoint> {
  const { db } = deps.store;
  const { sessionId: id } = scope;
  const { continuedStep, continuedRound, continuedFrom } = input;
  if (continuedStep !== undefined) {
    const step = continuedStep + 1;
    if (continuedFrom !== undefined && continuedFrom === (await runInCharge(db, id)))
      return { step, phase: "resume" };
    return { step, phase: "model", round: continuedRound ?? "earlier" };
  }
  const [lastStarted, last, before] = await Promise.all([
    chainStart(db, id, input.chain),
    lastUsedStep(db, id),
    finishedBefore(deps, scope),
  ]);
  if (lastStarted !== undefined) return { step: lastStarted + 1, phase: "model", round: "earlier" };
  return { step: Math.max(last, before) + 1, phase: "resume" };
}

/** The last step of the run before this one, by its history, if the rows do not have its end: they may be older than it. */
async function finishedBefore(
  { store, sessionRuns }: AgentDeps,
  { sessionId, runId }: ActivityScope,
): Promise<number> {
  const [newest, runIds] = await Promise.all([
    sessionRuns.newestEnded(sessionId, runId),
    endedRunsOf(store.db, sessionId),
  ]);
  return newest === undefined || runIds.includes(newest) ? 0 : sessionRuns.finished(sessionId, newest);
}

/** Ends the calls that an earlier run left open. @param goesOn the run continues that one, with its questions that block no call */
async function endOpenCalls(
  deps: AgentDeps,
  { runId }: ActivityScope,
  session: Session,
  goesOn: boolean,
): Promise<void> {
  const stopped = await deps.store.db.transaction(async (tx) =>
    (await lockRun(tx, session.id, runId))
      ? interruptOpenCalls(tx, session.id, session.epoch, { goesOn })
      : [],
  );
  endTasks(deps, session, stopped);
}

/** Creates the row of a session that was started from the Web UI or Temporal's CLI, with nothing but a task. */
async function prepareFromTask(deps: AgentDeps, id: string, task: string): Promise<void> {
  if (!deps.defaultConfig) {
    throw fatal(
      "BadConfiguration",
      "This worker knows no model to run a task with: set LONGHAUL_MODEL, or start the task with the client.",
    );
  }
  const session = { id, task: deps.sanitizer.clean(task), config: deps.defaultConfig };
  if (isDelegateId(id) || !(await makeOrAdopt(deps.store, session))) throw idTaken(id);
}

/** Creates the row of a session that a schedule started. A session that exists already does not need the schedule any more. */
async function prepareScheduled({ store, sanitizer }: AgentDeps, id: string, name: string): Promise<void> {
  if (!isStartOf(name, id)) throw idTaken(id);
  const schedule = await findSchedule(store.db, name);
  if (schedule === undefined) return;
  const { task, config, owner } = await mendSchedule(store.db, schedule, sanitizer.clean);
  const session = { id, task, config: config as RunConfig, owner: owner ?? undefined };
  if (!(await makeOrAdopt(store, session))) throw idTaken(id);
}

/** Once for a run, whichever attempt comes so far; a run that went back was announced when it claimed the session. */
async function announceStart(
  deps: AgentDeps,
  scope: ActivityScope,
  session: Session,
  { step, model }: { readonly step: number; readonly model: string },
): Promise<void> {
  const data = {
    task: shorten(session.task.trim().split("\n", 1)[0] ?? "", 120),
    model,
    continued: step > 0,
    owner: session.owner,
  };
  const isNew = await deps.store.db.transaction(async (tx) => {
    if (!(await lockRun(tx, session.id, scope.runId))) return false;
    if (await hasBegun(tx, session.id, scope.runId)) return false;
    await appendEvents(tx, session.id, session.epoch, [{ type: "session:started", step, data }]);
    return true;
  });
  if (!isNew) return;
  reportStart({ deps, scope, session }, { model, step });
}

async function gitOf(db: Queryable, { id, config: { repository, reviews } }: Session) {
  if (repository === undefined) return {};
  const stored = await findRepository(db, id);
  const branch = stored?.branch ?? toBranchName(repository, id);
  const { push, pr } = repository;
  return {
    git: {
      fetch: stored === undefined ? (true as const) : undefined,
      branch,
      push,
      pr,
      review: reviews?.post === true ? (true as const) : undefined,
      ...(await followOf(db, id, repository)),
    },
  };
}

async function followOf(db: Queryable, id: string, { follow }: Pick<SessionGit, "follow">) {
  const row = await findFollow(db, id);
  if (row === undefined) return { follow: follow?.on === true ? ("from-opening" as const) : undefined };
  if (row.endedAt !== null) return {};
  const isTold = (await listFollowRounds(db, id)).some(({ endedAt }) => endedAt === null);
  return { follow: "on" as const, refresh: isTold ? (true as const) : undefined };
}

async function traceFor({ store, telemetry }: AgentDeps, { runId: run }: ActivityScope, session: Session) {
  if (telemetry === undefined) return {};
  return { trace: { id: (await traceOf(store.db, session, run)).traceId, run } };
}

/** What a run's policy takes from the worker that opens the session. */
function workerFacts(deps: AgentDeps) {
  const { models, admin, hostTimeoutMs } = deps.taskQueues;
  return {
    searchAttributes: deps.searchAttributes,
    taskQueues: { models, admin },
    timeouts: { heartbeatMs: deps.heartbeatTimeoutMs, hostMs: hostTimeoutMs },
    ownToolMs: deps.ownTools?.maxTimeoutMs,
    notifies: deps.notices === undefined ? undefined : (true as const),
  };
}

/** How often a session checks whether a delegate has ended, in ms. Chosen; Temporal nearly always reports the end itself. */
const LOOK_MS = 300_000;

function delegatesOf({ delegateLookMs: lookMs = LOOK_MS }: AgentDeps, { config: { delegate } }: Session) {
  return delegate?.enabled === true ? { delegates: { maxConcurrent: delegate.maxConcurrent, lookMs } } : {};
}

/** Continued as new, reset or terminated: the sandbox is still on its host, which runs its calls. */
function sandboxOf({ container, sandboxQueue }: Session): Pick<OpenedSession, "sandbox"> {
  return container === undefined || sandboxQueue === undefined
    ? {}
    : { sandbox: { container, taskQueue: sandboxQueue } };
}
