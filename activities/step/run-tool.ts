/**
 * One tool call through the ledger.
 *
 * Idempotency key: (session, live epoch, step, index). A row says `running` before anything is run; the command's name
 * in the sandbox is the call's key, so that a second attempt finds the first one's process instead of starting another.
 * Side effects: the tool's own, the result's row, an event. Heartbeat: by timer. Retry class: a lost sandbox or database.
 * Cancel: the command's whole process group is ended and its output so far kept; a deploy leaves it running for the
 * next attempt.
 */
import { log } from "@temporalio/activity";
import { inScope, type ActivityScope } from "../runtime/activity-scope.ts";
import type { BackgroundSaves } from "../workspace/background-save.ts";
import { reasonOf } from "../contract/errors.ts";
import { progressNote } from "../contract/calls.ts";
import type { ToolCallPart, ToolResultPart } from "../contract/message.ts";
import { estimateMessage } from "../contract/request-size.ts";
import type { RunToolInput, ToolFacts } from "../contract/activities.ts";
import type { AgentDeps } from "../runtime/deps.ts";
import { enterReading } from "../runtime/enter-session.ts";
import { missingFacts, unlessMissing } from "../runtime/note-missing.ts";
import { createSessionMemory } from "../store/session-memory.ts";
import { saveSandbox } from "../workspace/save-files.ts";
import { abortable } from "../sandbox/shared-work.ts";
import { watchEgress } from "../workspace/egress.ts";
import { withoutLost, type SessionSandboxes } from "../workspace/session-sandbox.ts";
import { createFolderNotes, openedSkill, type FoundNotes } from "./folder-notes.ts";
import { resultEvent } from "../store/call-events.ts";
import { endedBefore, hasEnded, hashOf, storedElsewhere } from "./ended-call.ts";
import { NEEDS_APPROVAL, refusalOf } from "./refused-call.ts";
import { storeFullOutput } from "./store-full-output.ts";
import type { Session } from "../store/sessions.ts";
import { findAskedCall, noSuchCall } from "../store/asked-call.ts";
import { keepResult } from "../store/commit-step.ts";
import { callKey, claimCall, type LedgerRow } from "../store/tool-calls.ts";
import { reportTool, textsOfCall } from "../runtime/telemetry/report.ts";
import { withFallback } from "../config/asked-model.ts";
import { toolLimitsOf } from "../config/run-policy.ts";
import { findTool } from "../tools/index.ts";
import { readCall } from "../tools/reading/read-call.ts";
import { sessionTools } from "../tools/session-tools.ts";
import type { ServerAsks } from "../tools/tool.ts";
import { mcpCalls } from "./mcp-calls.ts";
import { ownCalls } from "./own-calls.ts";
import { FORGOTTEN, interrupted, lostCall, stopOfCall } from "./stopped-call.ts";
import { invokeTool, type InvokedTool } from "../tools/invoke.ts";

export function createRunTool(deps: AgentDeps, sandboxes: SessionSandboxes, saves: BackgroundSaves) {
  const notesFor = createFolderNotes(deps);
  return (input: RunToolInput): Promise<ToolFacts> =>
    inScope(deps, (scope) =>
      unlessMissing(deps, scope, input.step, {
        body: () => runTool(deps, { sandboxes, saves, notesFor }, scope, input),
        missing: missingFacts(input),
      }),
    );
}

interface Helpers {
  readonly sandboxes: SessionSandboxes;
  readonly saves: BackgroundSaves;
  readonly notesFor: ReturnType<typeof createFolderNotes>;
}

async function runTool(
  deps: AgentDeps,
  { sandboxes, saves, notesFor }: Helpers,
  scope: ActivityScope,
  input: RunToolInput,
): Promise<ToolFacts> {
  const { db } = deps.store;
  const at = { step: input.step, phase: "tools" } as const;
  const read = () => findAskedCall(db, scope.sessionId, input);
  const [entered, found] = await enterReading(deps, scope, at, read);
  // The result's size limit depends on the window of the model that will read it.
  const session = { ...entered, config: withFallback(entered.config, input.fallback) };
  const tools = sessionTools(deps.tools, session);
  const { calls } = found;
  // An answer of an older worker was stored as written; rules judge what will run.
  const call = { ...found.call, ...readCall(tools, found.call) };
  const asked = { ...found, call };
  const refused = await refusalOf(db, session, asked);
  if (refused === "ask") return NEEDS_APPROVAL;
  const isReadOnly = (name: string) => findTool(tools, name)?.readOnly ?? false;
  const claim = await claimCall(db, asked.row, isReadOnly);
  if (!claim) throw noSuchCall(session.id, input);
  const { before, fence } = claim;
  const begun = performance.now();
  if (hasEnded(before)) return endedBefore(db, before, call);

  const isOutside = before.mcpServer !== null || deps.ownTools?.byName.has(call.toolName) === true;
  if (fence > before.fence) await scope.claimed(isOutside);
  // An earlier attempt claimed the call, and its row does not say so: the database was restored from an older copy.
  const isForgotten = scope.hadClaim && before.status === "pending";
  const resumed = before.status === "running" || isForgotten;
  const tool = findTool(tools, call.toolName);
  const changes = tool !== undefined && (tool.changesFiles ?? !tool.readOnly);
  const save = () =>
    saveSandbox(deps, sandboxes, session, input.step).catch((error: unknown) => {
      const reason = reasonOf(error);
      log.warn("the workspace was not saved; the next save makes up for it", { step: input.step, reason });
      throw error;
    });
  const invoked: Invoked =
    refused ??
    (input.isLost === true ? lostCall("This call was ended from outside") : undefined) ??
    (isForgotten && before.mcpServer !== null ? lostCall(FORGOTTEN) : undefined) ??
    (await saves.around(session.id, { changes, save }, (saved) =>
      withoutLost(sandboxes, session.id, () =>
        invoke(deps, sandboxes, scope, { session, call, row: before, fence, resumed, saved }),
      ),
    ));
  if (invoked.asks !== undefined) return waitsFor(deps, invoked.asks);
  const durationMs = Math.round(performance.now() - begun);
  const notes =
    refused === undefined && (invoked.outcome === "completed" || invoked.outcome === "error")
      ? await notesFor(
          session,
          { calls, index: input.index },
          async () => (await sandboxes.open(session, input.step)).sandbox,
        )
      : undefined;
  return store(deps, scope, { session, call, row: before, fence, durationMs, notes }, invoked);
}

interface CallInHand {
  readonly session: Session;
  readonly call: ToolCallPart;
  readonly row: LedgerRow;
}

type Invoked = InvokedTool & Pick<ToolFacts, "asksForDomains">;

interface CallToRun extends CallInHand {
  readonly fence: number;
  readonly resumed: boolean;
  /** Resolves when no save is in progress. */
  readonly saved: Promise<void>;
}

async function invoke(
  deps: AgentDeps,
  sandboxes: SessionSandboxes,
  scope: ActivityScope,
  { session, call, row, fence, resumed, saved }: CallToRun,
): Promise<Invoked> {
  const tools = sessionTools(deps.tools, session);
  const tool = findTool(tools, call.toolName);
  const { signal, stopped } = stopOfCall(scope);
  const egress = watchEgress(deps, session, row.step);
  const context = {
    callKey: callKey(row),
    resumed,
    claimedIn: row.container ?? undefined,
    // A call does not start while a save is in progress, which would get half of its changes. A stop ends either wait.
    sandbox: async () => {
      await abortable(saved, signal);
      const { sandbox } = await sandboxes.open(session, row.step, signal);
      await egress.begin(sandbox);
      return sandbox;
    },
    limits: toolLimitsOf(session.config, tool?.name ?? call.toolName),
    signal,
    memory: createSessionMemory(deps.store.db, session.id),
    maskWindow: (text: string, from: number, to: number) => deps.sanitizer.maskWindow(text, from, to),
    mcp: mcpCalls(deps, session, { row, fence, runId: scope.runId }),
    own: ownCalls(deps, row),
    onProgress: (bytes: number, line: string | undefined) =>
      scope.note(progressNote(callKey(row), bytes, line)),
  };
  const running = invokeTool(tools, { ...call, name: call.toolName }, context, {
    clean: deps.sanitizer.clean,
  }).catch((error: unknown): InvokedTool => {
    if (!scope.stoppedByPerson()) throw error;
    return interrupted("The user stopped this call before it finished.");
  });
  try {
    const result = await Promise.race([running, stopped]);
    // The person who stopped the call does not wait for that.
    const note = signal.aborted ? undefined : await egress.end();
    if (note === undefined) return result;
    const asks = session.config.sandbox.askForDomains === true && egress.asks;
    return { ...result, text: `${result.text}\n${note}`, ...(asks ? { asksForDomains: true as const } : {}) };
  } finally {
    egress.stop();
  }
}

/** The facts of a call without a result yet: the workflow asks people first. */
function waitsFor({ idsOnly }: AgentDeps, { server, questions }: ServerAsks): ToolFacts {
  const serverAsks = {
    server,
    questions: questions.map(({ id, about, isOptional }) => ({
      id,
      about: idsOnly === true ? "" : about,
      ...(isOptional ? { isOptional } : {}),
    })),
  };
  return { outcome: "error", tokens: 0, ms: 0, hash: "", serverAsks };
}

interface Finished extends CallInHand {
  readonly fence: number;
  readonly durationMs: number;
  readonly notes: FoundNotes | undefined;
}

async function store(
  deps: AgentDeps,
  scope: ActivityScope,
  done: Finished,
  result: Invoked,
): Promise<ToolFacts> {
  const { session, call, row, fence, durationMs, notes } = done;
  if (result.truncated && result.whole)
    await storeFullOutput(deps, { sessionId: session.id, handle: callKey(row) }, result.whole.pieces());
  const part: ToolResultPart = {
    type: "tool-result",
    toolCallId: call.toolCallId,
    toolName: call.toolName,
    outcome: result.outcome,
    text: result.text + (notes?.text ?? ""),
    ...(result.files.length > 0 ? { files: result.files } : {}),
  };
  const message = { role: "tool", content: [part] } as const;
  const tokens = estimateMessage(message, session.config);
  const { outcome, exitCode, truncated } = result;
  const events = [
    resultEvent(row, { outcome, text: result.text, durationMs, exitCode, truncated }),
    ...(notes?.events ?? []),
    ...(outcome === "completed" ? openedSkill(session, call) : []),
  ];
  const { runId } = scope;
  const { epoch } = session;
  const end = {
    runId,
    call: row,
    fence,
    outcome,
    exitCode,
    streams: result.streams,
    truncated,
    content: message.content,
    tokens,
    epoch,
    attempt: scope.attempt,
    events,
    ...(notes === undefined || notes.notes.length === 0 ? {} : { meta: { notes: notes.notes } }),
  };
  if (!(await keepResult(deps.store, end, durationMs))) return storedElsewhere(deps.store.db, scope, done);
  const { name, mcpServer: server } = row;
  const ids = { step: row.step, attempt: scope.attempt, name, callKey: callKey(row), callId: row.callId };
  reportTool(
    { deps, scope, session },
    { ...ids, outcome, exitCode, server: server ?? undefined, durationMs },
    textsOfCall(call.input, part.text),
  );
  deps.notifier.wake(session.id);
  return {
    outcome: result.outcome,
    tokens,
    ms: durationMs,
    hash: hashOf(call, part.text),
    ...(result.isLive === true ? { isLive: true as const } : {}),
    ...(result.asksForDomains === true ? { asksForDomains: true as const } : {}),
  };
}
