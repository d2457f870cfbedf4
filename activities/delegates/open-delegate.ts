/**
 * Makes the session that does a call of `delegate`: its row, its first files, its task. The workflow starts its run.
 *
 * Idempotency key: the call of the ledger, which names the session. Side effects: a checkpoint of the parent, rows, an event.
 * Heartbeat: by timer. Retry class: engine and database. Cancel: is not asked for; it takes as long as a save.
 */
import { inScope, type ActivityScope } from "../runtime/activity-scope.ts";
import type { OpenDelegateInput, OpenedDelegate } from "../contract/calls.ts";
import { superseded } from "../contract/failures.ts";
import type { ToolCallPart } from "../contract/message.ts";
import { childConfig, childIdOf, delegateNote } from "./child-session.ts";
import { storeDelegateResult } from "./store-result.ts";
import type { AgentDeps } from "../runtime/deps.ts";
import { enterSession } from "../runtime/enter-session.ts";
import { missingFacts, unlessMissing } from "../runtime/note-missing.ts";
import { endedBefore, hasEnded } from "../step/ended-call.ts";
import { makeOrAdopt } from "../store/adopt-session.ts";
import {
  copyNewestFiles,
  countDelegations,
  findDelegate,
  findDelegation,
  nameDelegate,
} from "../store/delegations.ts";
import { appendEvents } from "../store/events.ts";
import { endOrphans } from "../store/runs.ts";
import type { Session } from "../store/sessions.ts";
import { findAskedCall, noSuchCall } from "../store/asked-call.ts";
import { callKey, claimCall, type LedgerRow } from "../store/tool-calls.ts";
import { lockRun } from "../store/session-locks.ts";
import { aboutCall } from "../tools/invoke.ts";
import { delegateInput, type DelegateInput } from "../tools/delegate.ts";
import type { BackgroundSaves } from "../workspace/background-save.ts";
import { saveSandbox } from "../workspace/save-files.ts";
import type { SessionSandboxes } from "../workspace/session-sandbox.ts";

export function createOpenDelegate(deps: AgentDeps, sandboxes: SessionSandboxes, saves: BackgroundSaves) {
  return (input: OpenDelegateInput): Promise<OpenedDelegate> =>
    inScope(deps, (scope) =>
      unlessMissing<OpenedDelegate>(deps, scope, input.step, {
        body: () => openDelegate(deps, { sandboxes, saves }, scope, input),
        missing: { kind: "settled", facts: missingFacts(input) },
      }),
    );
}

interface ParentFiles {
  readonly sandboxes: SessionSandboxes;
  readonly saves: BackgroundSaves;
}

async function openDelegate(
  deps: AgentDeps,
  { sandboxes, saves }: ParentFiles,
  scope: ActivityScope,
  input: OpenDelegateInput,
): Promise<OpenedDelegate> {
  const session = await enterSession(deps, scope, { step: input.step, phase: "tools" });
  const { row, fence, call, task } = await callOf(deps, session, input);
  if (hasEnded(row)) return { kind: "settled", facts: await endedBefore(deps.store.db, row, call) };
  const known = await findDelegation(deps.store.db, row);
  const child = childIdOf(row);
  if (known?.childId === child && (await findDelegate(deps.store.db, child, session.id)) !== undefined)
    return { kind: "open", child, access: task.access };
  // Another delegate known for this call is from before a reset, and still runs in Temporal.
  const delegated = known === undefined ? await countDelegations(deps.store.db, session.id) : 0;
  const allowed =
    session.config.delegate && childConfig(session.config, session.config.delegate, task, delegated);
  const refuse = async (text: string): Promise<OpenedDelegate> => {
    const refused = { outcome: "error", text, truncated: false, durationMs: 0 } as const;
    const at = { session, row: { ...row, fence }, call };
    return { kind: "settled", facts: await storeDelegateResult(deps, scope, at, refused) };
  };
  if (allowed?.ok !== true)
    return refuse(allowed?.message ?? "This session cannot delegate. Do it yourself.");
  await saves.saving(session.id, () => saveSandbox(deps, sandboxes, session, input.step));
  if (!(await makeChild(deps, scope, { session, row, call, task, child }, allowed.config)))
    return refuse(
      `No delegate was started: the id of its session, ${child}, belongs to another session. Do it yourself.`,
    );
  await endOrphans(deps, session.id);
  return { kind: "open", child, access: task.access };
}

/** The call, claimed: from here on no one can be sure that it did not begin. */
async function callOf({ store: { db } }: AgentDeps, session: Session, input: OpenDelegateInput) {
  const { row, call } = await findAskedCall(db, session.id, input);
  const claim = await claimCall(db, row, () => false);
  const task = delegateInput.safeParse(call.input);
  if (claim === undefined || !task.success) throw noSuchCall(session.id, input);
  return { row: claim.before, fence: claim.fence, call, task: task.data };
}

interface Order {
  readonly session: Session;
  readonly row: LedgerRow;
  readonly call: ToolCallPart;
  readonly task: DelegateInput;
  readonly child: string;
}

/** @returns false if the child's id belongs to a session that is not this call's */
async function makeChild(
  { store, notifier, sanitizer, tools }: AgentDeps,
  { runId }: ActivityScope,
  { session, row, call, task, child }: Order,
  config: Session["config"],
): Promise<boolean> {
  const { access } = task;
  const isOurs = await makeOrAdopt(store, {
    id: child,
    task: task.task,
    parts: [{ type: "text", text: delegateNote(access) }],
    config,
    owner: session.owner,
    prompt: session.system,
    parent: { id: session.id, call: callKey(row), epoch: row.epoch, access },
  });
  if (!isOurs) return false;
  const about = sanitizer.clean(aboutCall(tools, { name: call.toolName, input: call.input }));
  await store.db.transaction(async (tx) => {
    if (!(await lockRun(tx, session.id, runId))) throw superseded("no delegate was started");
    const base = await copyNewestFiles(tx, session.id, child);
    await nameDelegate(tx, row, { childId: child, access, baseCheckpoint: base ?? null });
    const data = { callId: call.toolCallId, childId: child, access, about };
    await appendEvents(tx, session.id, session.epoch, [{ type: "delegate:started", step: row.step, data }]);
  });
  notifier.wake(session.id);
  return true;
}
