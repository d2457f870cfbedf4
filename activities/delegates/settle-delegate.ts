/**
 * The end of a delegate as its parent's result: its last answer, its figures, and with write access its files.
 *
 * Idempotency key: the call of the ledger. Side effects: files in the parent's sandbox (each compared before it is written), a
 * save of them, the result's row, events. Heartbeat: by timer. Retry class: engine and database. Cancel: is not asked for.
 */
import { log } from "@temporalio/activity";
import { inScope, type ActivityScope } from "../runtime/activity-scope.ts";
import type { DelegateEnd, SettledDelegate, SettleDelegateInput } from "../contract/calls.ts";
import { limitOf } from "../contract/limits.ts";
import { withFallback } from "../config/asked-model.ts";
import { sessionCostUsd } from "../config/cost.ts";
import { toolLimitsOf } from "../config/run-policy.ts";
import { changedFiles, type Changes, applyFiles } from "./delegate-files.ts";
import {
  delegateResult,
  outcomeOfDelegate,
  type EndedDelegate,
  type ReturnedFiles,
  storeDelegateResult,
} from "./delegate-result.ts";
import type { AgentDeps } from "../runtime/deps.ts";
import { enterSession } from "../runtime/enter-session.ts";
import { missingEnd } from "../runtime/interrupt-open-calls.ts";
import { missingFacts, unlessMissing } from "../runtime/note-missing.ts";
import { storeFullOutput } from "../runtime/full-output.ts";
import { endedBefore, callHasEnded } from "../step/call-result.ts";
import {
  endDelegation,
  endedWithItsLine,
  findDelegate,
  findDelegation,
  type Delegate,
  type Delegation,
} from "../store/delegations.ts";
import type { Queryable } from "../store/db.ts";
import type { NewEvent } from "../store/event.ts";
import { loadBill, spentUsd } from "../store/model-calls.ts";
import { findSandbox } from "../store/sandboxes.ts";
import { endAbandoned, lastStep, type Session } from "../store/sessions.ts";
import { findAskedCall, callKey, openCalls, type OpenCall } from "../store/tool-calls.ts";
import { DELEGATE } from "../tools/delegate.ts";
import type { BackgroundSaves } from "../workspace/background-save.ts";
import { saveSandbox } from "../workspace/save-files.ts";
import { withoutLost, type SessionSandboxes } from "../workspace/session-sandbox.ts";

export function createSettleDelegate(deps: AgentDeps, sandboxes: SessionSandboxes, saves: BackgroundSaves) {
  return (input: SettleDelegateInput): Promise<SettledDelegate> =>
    inScope(deps, (scope) =>
      unlessMissing<SettledDelegate>(deps, scope, input.step, {
        body: () => settleDelegate(deps, { sandboxes, saves }, scope, input),
        missing: { kind: "settled", facts: missingFacts(input) },
      }),
    );
}

/** The parent's sandbox, and the saves of it. */
interface ParentFiles {
  readonly sandboxes: SessionSandboxes;
  readonly saves: BackgroundSaves;
}

async function settleDelegate(
  deps: AgentDeps,
  parentFiles: ParentFiles,
  scope: ActivityScope,
  input: SettleDelegateInput,
): Promise<SettledDelegate> {
  const { db } = deps.store;
  const { step, index, child } = input;
  const entered = await enterSession(deps, scope, { step, phase: "tools" });
  const session = { ...entered, config: withFallback(entered.config, input.fallback) };
  const [{ row: found, call }, delegate] = await Promise.all([
    findAskedCall(db, session.id, { step, index }),
    findDelegate(db, child, session.id),
  ]);
  if (callHasEnded(found)) return { kind: "settled", facts: await endedBefore(deps.store.db, found, call) };
  if (delegate === undefined) {
    const lost = { ...missingEnd(), truncated: false, durationMs: 0 };
    return {
      kind: "settled",
      facts: await storeDelegateResult(deps, scope, { session, row: found, call }, lost),
    };
  }
  if (await isAtWork(deps, delegate, input.closed)) return { kind: "running" };
  if (input.stopped === undefined && (await endedWithItsLine(db, found, child))) return { kind: "again" };
  const delegation = await findDelegation(db, found);
  const open = (await openCalls(db, session.id)).filter((row) => row.step === step);
  // Once the workflow knows that a delegate has ended, it keeps the calls in order itself. While it polls, it does not know yet.
  const isLook = input.closed === undefined && delegation?.access === "write";
  if (isLook && (await isBehindOther(db, open, index))) return { kind: "running" };
  if (input.closed === "not-started") await endUnstarted(deps, child);

  const own = open.find((row) => row.index === index);
  const { runningMs: durationMs, ...row } = own ?? { ...found, runningMs: 0 };
  const end = await endOf(deps, delegate, input);
  const changes = await changesOf(deps, end, delegation);
  const files =
    changes.files.length === 0 || outcomeOfDelegate(end) !== "completed"
      ? leftThere(end, changes)
      : await takeFiles(deps, parentFiles, scope, { session, step, changes });
  const handle = callKey(row);
  const result = delegateResult(end, files, {
    handle,
    maxChars: toolLimitsOf(session.config, DELEGATE).maxChars,
  });
  if (result.whole !== undefined)
    await storeFullOutput(deps, { sessionId: session.id, handle }, piecesOf(result.whole));
  const { applied, notApplied } = files;
  const outcome = outcomeOfDelegate(end);
  const mergedStatus = notApplied.length === 0 ? "applied" : "partly";
  const status = outcome === "completed" ? mergedStatus : "failed";
  await endDelegation(db, row, { status, files: { applied, notApplied } });
  const ended = endedEvent({ step, callId: call.toolCallId }, end, files);
  const text = deps.sanitizer.clean(result.text);
  const stored = { outcome, text, truncated: result.truncated, durationMs, events: [ended] };
  const facts = await storeDelegateResult(deps, scope, { session, row, call }, stored);
  const limited = session.config.limits.maxCostUsd !== undefined;
  return {
    kind: "settled",
    facts: { ...facts, ...(limited ? { costUsd: await spentUsd(db, session.id) } : {}) },
  };
}

/** How many files an event names of each kind. */
const MAX_IN_EVENT = 100;

function endedEvent(
  { step, callId }: { readonly step: number; readonly callId: string },
  { child, status, steps, costUsd }: EndedDelegate,
  { applied, merged = [], notApplied }: ReturnedFiles,
): NewEvent {
  return {
    type: "delegate:ended",
    step,
    data: {
      callId,
      childId: child,
      status,
      steps,
      costUsd,
      applied: applied.slice(0, MAX_IN_EVENT),
      merged: merged.length === 0 ? undefined : merged.slice(0, MAX_IN_EVENT),
      notApplied: notApplied.slice(0, MAX_IN_EVENT),
    },
  };
}

async function* piecesOf(text: string): AsyncGenerator<string> {
  yield text;
}

/**
 * Whether the delegate still runs. Its row ends shortly before its run, which may continue with a message that arrived in
 * between; a run that closed without ending the row may have been reset.
 */
async function isAtWork(
  { sessionRuns }: AgentDeps,
  { id, hasEnded: isOver }: Delegate,
  closed: DelegateEnd | undefined,
): Promise<boolean> {
  if (closed === "not-started" || (closed !== undefined && isOver)) return false;
  return (closed === undefined && !isOver) || sessionRuns.isRunning(id);
}

/** Whether the files of an earlier call must be applied first. */
async function isBehindOther(db: Queryable, open: readonly OpenCall[], index: number): Promise<boolean> {
  for (const row of open) {
    if (row.name !== DELEGATE || row.index >= index) continue;
    if ((await findDelegation(db, row))?.access !== "read") return true;
  }
  return false;
}

/** A session that was created and never began has no run that would end it. */
async function endUnstarted({ store }: AgentDeps, child: string): Promise<void> {
  const message = "It was stopped before it began.";
  await endAbandoned(store.db, child, undefined, { status: "cancelled", message });
}

async function endOf(
  { store: { db } }: AgentDeps,
  delegate: Delegate,
  { child, closed, stopped }: SettleDelegateInput,
): Promise<EndedDelegate> {
  const [steps, bill] = await Promise.all([lastStep(db, child), loadBill(db, child)]);
  return {
    child,
    status: delegate.status,
    limit: limitOf(delegate.status, delegate.error),
    steps,
    costUsd: sessionCostUsd(bill, delegate.price),
    answer: delegate.result ?? "",
    error: delegate.error,
    closed,
    stopped,
  };
}

/** What a delegate with write access changed, and which of its changes cannot be merged. */
async function changesOf(
  { store: { db } }: AgentDeps,
  { child, closed }: EndedDelegate,
  delegation: Delegation | undefined,
): Promise<Changes> {
  if (delegation?.access !== "write" || closed === "not-started") return { files: [], left: [] };
  const [{ files, left }, sandboxRow] = await Promise.all([
    changedFiles(db, child, delegation.baseCheckpoint ?? undefined),
    findSandbox(db, child),
  ]);
  const unsaved = (sandboxRow?.leftOut ?? []).map(({ path, reason }) => ({
    path,
    reason: `no save has it (${reason})`,
  }));
  return { files, left: [...left, ...unsaved] };
}

/** For a delegate that did not finish: names the files that it changed, which stay in its own session. */
function leftThere({ child }: EndedDelegate, { files, left }: Changes): ReturnedFiles {
  const reason = `the delegate did not finish; its session ${child} has it`;
  return { applied: [], notApplied: [...files.map(({ path }) => ({ path, reason })), ...left], left: [] };
}

async function takeFiles(
  deps: AgentDeps,
  { sandboxes, saves }: ParentFiles,
  scope: ActivityScope,
  { session, step, changes }: { readonly session: Session; readonly step: number; readonly changes: Changes },
): Promise<ReturnedFiles> {
  const save = () =>
    saveSandbox(deps, sandboxes, session, step).catch((error: unknown) => {
      log.warn("the workspace was not saved; the next save makes up for it", { step, reason: String(error) });
      throw error;
    });
  const files = await saves.around(session.id, { changes: true, save }, (saved) =>
    withoutLost(sandboxes, session.id, async () => {
      await saved;
      const { sandbox } = await sandboxes.open(session, step, scope.signal);
      return applyFiles(sandbox, changes.files, scope.signal);
    }),
  );
  const refused = new Set(files.notApplied.map(({ path }) => path));
  return {
    applied: files.applied,
    merged: files.merged,
    notApplied: [...files.notApplied, ...changes.left],
    left: changes.files.filter(({ path }) => refused.has(path)),
  };
}
