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
import { storeDelegateResult } from "./delegate-result.ts";
import type { AgentDeps } from "../runtime/deps.ts";
import { enterSession } from "../runtime/enter-session.ts";
import { missingFacts, unlessMissing } from "../runtime/note-missing.ts";
import { endedBefore, callHasEnded } from "../step/call-result.ts";
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
import { findAskedCall, noSuchCall, callKey, claimCall, type LedgerRow } from "../store/tool-calls.ts";
import { lockRun } from "../store/session-locks.ts";
import { aboutCall } from "../tools/invoke.ts";
import { delegateInput, type DelegateInput } from "../tools/delegate.ts";
import type { BackgroundSaves } from "../workspace/background-save.ts";
import { saveSandbox } from "../workspace/save-files.ts";
import type { SessionSandboxes } from "../workspace/session-sandbox.ts";
import type { RunConfig, DelegateSettings } from "../config/agent-config.ts";
import { besidesModel, modelOf } from "../config/asked-model.ts";
import { withFreshServices } from "../config/service-settings.ts";
import type { ModelTarget } from "../config/model-target.ts";

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
  if (callHasEnded(row)) return { kind: "settled", facts: await endedBefore(deps.store.db, row, call) };
  const known = await findDelegation(deps.store.db, row);
  const child = toChildId(row);
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
  { store, sanitizer, tools }: AgentDeps,
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
  return true;
}

/** Named after the call in the ledger, with the epoch after a reset, so that no two delegates share a name. */
export function toChildId(call: {
  readonly sessionId: string;
  readonly epoch: number;
  readonly step: number;
  readonly index: number;
}): string {
  return `${call.sessionId}.s${call.step}c${call.index}${call.epoch === 1 ? "" : `e${call.epoch}`}`;
}

export type ChildConfig =
  | { readonly ok: true; readonly config: RunConfig }
  | { readonly ok: false; readonly message: string };

/**
 * A delegate's configuration: its parent's settings and cost limit, but no repository, no output schema and no delegates.
 * @param delegated how many of the parent's calls have delegates already
 */
export function childConfig(
  parent: RunConfig,
  settings: DelegateSettings,
  input: DelegateInput,
  delegated: number,
): ChildConfig {
  if (delegated >= settings.maxPerSession)
    return refused(
      `This session has had ${settings.maxPerSession} delegates, which is the limit. Do it yourself.`,
    );
  if (!settings.access.includes(input.access))
    return refused(`access: ${input.access} is not allowed here; allowed: ${settings.access.join(", ")}.`);
  const target = targetOf(parent, settings, input.model);
  if (target === undefined) {
    const names = modelsOf(parent, settings).map(({ model }) => model);
    return refused(`"${input.model}" is not one of this session's models: ${names.join(", ")}.`);
  }
  const {
    repository: _repository,
    delegate: _delegate,
    outputSchema: _outputSchema,
    verify: _verify,
    fallback,
    ...rest
  } = besidesModel(parent);
  const maxSteps = Math.min(input.max_steps ?? settings.maxSteps, settings.maxSteps);
  const config: RunConfig = {
    ...rest,
    ...target,
    // Fallback models replace only the session's own model.
    fallback: fallback === undefined || target.model !== parent.model ? undefined : fallback,
    sandbox: withFreshServices(parent.sandbox),
    // Only the session that people started asks them.
    limits: { ...parent.limits, maxSteps, onLimit: "stop" },
  };
  return { ok: true, config };
}

const refused = (message: string): ChildConfig => ({ ok: false, message });

function modelsOf(parent: RunConfig, { target }: DelegateSettings): ModelTarget[] {
  return [modelOf(parent), ...(target === undefined ? [] : [target]), ...(parent.fallback ?? [])];
}

function targetOf(
  parent: RunConfig,
  settings: DelegateSettings,
  askedModel: string | undefined,
): ModelTarget | undefined {
  if (askedModel === undefined) return settings.target ?? modelOf(parent);
  return modelsOf(parent, settings).find(
    ({ model, modelName }) => model === askedModel || modelName === askedModel,
  );
}

/** Follows the task in the delegate's first message. */
function delegateNote(access: DelegateInput["access"]): string {
  const files =
    access === "write"
      ? "/workspace is your own copy; the files that you change are copied back when you are done."
      : "/workspace is your own copy: nothing that you change there is kept, so put what was asked for into your answer.";
  return `[Another agent delegated this task to you. ${files} It reads nothing but your last answer.]`;
}
