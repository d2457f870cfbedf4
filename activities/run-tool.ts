/**
 * One tool call through the ledger.
 *
 * Idempotency key: (session, live epoch, step, index). A row says `running` before anything is run; the command's name
 * in the box is the call's key, so that a second attempt finds the first one's process instead of starting another.
 * Side effects: the tool's own, the result's row, an event. Heartbeat: by timer. Retry class: a lost box or database.
 * Cancel: the command's whole process group is ended and its output so far kept; a deploy leaves it running for the
 * next attempt.
 */
import { createHash } from "node:crypto";
import { log } from "@temporalio/activity";
import { inScope, type ActivityScope } from "./activity-scope.ts";
import type { BackgroundSaves } from "./session-box/background-save.ts";
import type { ToolCallPart, ToolResultPart } from "./context/message.ts";
import { estimateMessage } from "./context/tokens.ts";
import type { RunToolInput, ToolFacts } from "./contract.ts";
import type { AgentDeps } from "./deps.ts";
import { enterSession } from "./enter-session.ts";
import { fatal } from "./failures.ts";
import { createSessionMemory } from "./store/session-memory.ts";
import { saveBox } from "./session-box/save-box.ts";
import { withoutLost, type SessionBoxes } from "./session-box/session-box.ts";
import { keepWhole } from "./keep-whole.ts";
import type { Session } from "./store/sessions.ts";
import { commitResult } from "./store/commit-step.ts";
import { callKey, claimCall, resultOf, type LedgerRow } from "./store/tool-calls.ts";
import { callsOf, findAnswer } from "./store/transcript.ts";
import { toolLimitsOf } from "./run-policy.ts";
import { findTool } from "./tools/index.ts";
import { LeaveRunning } from "./tools/failure.ts";
import { invokeTool, type InvokedTool } from "./tools/invoke.ts";

export function createRunTool(deps: AgentDeps, boxes: SessionBoxes, saves: BackgroundSaves) {
  return (input: RunToolInput): Promise<ToolFacts> =>
    inScope(deps, (scope) => runTool(deps, boxes, saves, scope, input));
}

async function runTool(
  deps: AgentDeps,
  boxes: SessionBoxes,
  saves: BackgroundSaves,
  scope: ActivityScope,
  input: RunToolInput,
): Promise<ToolFacts> {
  const { db } = deps.store;
  const session = await enterSession(deps.store, scope, { step: input.step, phase: "tools" });
  const isReadOnly = (name: string) => findTool(deps.tools, name)?.readOnly ?? false;
  const [claim, answer] = await Promise.all([
    claimCall(db, session.id, input.step, input.index, isReadOnly),
    findAnswer(db, session.id, input.step),
  ]);
  const call = answer?.role === "assistant" ? callsOf(answer.content)[input.index] : undefined;
  if (!claim || !call)
    throw fatal(
      "BadConfiguration",
      `Step ${input.step} of session ${session.id} has no call ${input.index}.`,
    );
  const { before, fence } = claim;
  const begun = performance.now();
  if (before.status !== "pending" && before.status !== "running") return endedBefore(deps, before, call);

  const resumed = before.status === "running";
  const changes = findTool(deps.tools, call.toolName) !== undefined && !isReadOnly(call.toolName);
  const save = () =>
    saveBox(deps, boxes, session, input.step).catch((error: unknown) => {
      const reason = error instanceof Error ? error.message : String(error);
      log.warn("the workspace was not saved; the next save makes up for it", { step: input.step, reason });
      throw error;
    });
  const result = await saves.around(session.id, { changes, save }, () =>
    withoutLost(boxes, session.id, () => invoke(deps, boxes, scope, { session, call, row: before, resumed })),
  );
  const durationMs = Math.round(performance.now() - begun);
  return store(deps, scope, { session, call, row: before, fence, durationMs }, result);
}

interface CallInHand {
  readonly session: Session;
  readonly call: ToolCallPart;
  readonly row: LedgerRow;
}

async function invoke(
  deps: AgentDeps,
  boxes: SessionBoxes,
  scope: ActivityScope,
  { session, call, row, resumed }: CallInHand & { resumed: boolean },
): Promise<InvokedTool> {
  const tool = findTool(deps.tools, call.toolName);
  // Only a person's stop ends the command; for a deploy or a pause it runs on, and the next attempt follows it.
  const stop = new AbortController();
  const detached = new Promise<never>((_resolve, reject) => {
    const onAbort = () => {
      if (scope.stoppedByPerson()) stop.abort(scope.signal.reason);
      else {
        stop.abort(new LeaveRunning());
        scope.stopped().catch(reject);
      }
    };
    if (scope.signal.aborted) onAbort();
    scope.signal.addEventListener("abort", onAbort, { once: true });
  });
  const context = {
    callKey: callKey(row),
    resumed,
    claimedIn: row.container ?? undefined,
    sandbox: async () => (await boxes.open(session, row.step)).box,
    limits: toolLimitsOf(session.config, tool?.name ?? call.toolName),
    signal: stop.signal,
    memory: createSessionMemory(deps.store.db, session.id),
    onProgress: (note: string) => scope.note(note),
  };
  const running = invokeTool(deps.tools, { name: call.toolName, input: call.input }, context, {
    clean: deps.border.clean,
  }).catch((error: unknown): InvokedTool => {
    if (!scope.stoppedByPerson()) throw error;
    return {
      outcome: "interrupted",
      text: "The user stopped this call before it finished.",
      files: [],
      exitCode: undefined,
      truncated: false,
    };
  });
  return Promise.race([running, detached]);
}

interface Finished extends CallInHand {
  readonly fence: number;
  readonly durationMs: number;
}

async function store(
  deps: AgentDeps,
  scope: ActivityScope,
  done: Finished,
  result: InvokedTool,
): Promise<ToolFacts> {
  const { session, call, row, fence, durationMs } = done;
  if (result.truncated && result.whole)
    await keepWhole(deps, session.id, callKey(row), result.whole.pieces());
  const part: ToolResultPart = {
    type: "tool-result",
    toolCallId: call.toolCallId,
    toolName: call.toolName,
    outcome: result.outcome,
    text: result.text,
    ...(result.files.length > 0 ? { files: result.files } : {}),
  };
  const message = { role: "tool", content: [part] } as const;
  const tokens = estimateMessage(message);
  const { outcome, exitCode, truncated } = result;
  const data = {
    callId: call.toolCallId,
    index: row.index,
    name: call.toolName,
    outcome,
    durationMs,
    exitCode: exitCode ?? null,
    truncated,
    excerpt: result.text.slice(-300).toWellFormed(),
  };
  const event = { type: "llm:tool-result", step: row.step, attempt: scope.attempt, data } as const;
  const { runId } = scope;
  const { epoch } = session;
  const end = {
    runId,
    call: row,
    fence,
    outcome,
    exitCode,
    truncated,
    content: message.content,
    tokens,
    epoch,
    event,
  };
  // A late attempt of a worker that was thought dead finds the fence raised, or another run in charge.
  if (!(await commitResult(deps.store.pool, end, durationMs))) {
    throw fatal("Superseded", `Another attempt has this call by now; this one's result was dropped.`);
  }
  deps.notifier.wake(session.id);
  return { outcome: result.outcome, tokens, ms: durationMs, hash: hashOf(call, result.text) };
}

async function endedBefore(deps: AgentDeps, row: LedgerRow, call: ToolCallPart): Promise<ToolFacts> {
  const stored = await resultOf(deps.store.db, row);
  const text = (stored?.content as [ToolResultPart] | undefined)?.[0].text ?? "";
  return {
    outcome: row.status as ToolFacts["outcome"],
    tokens: stored?.tokens ?? 0,
    ms: 0,
    hash: hashOf(call, text),
  };
}

/** Same call and same result, same hash: eight hex characters are plenty among a session's last calls. */
function hashOf(call: ToolCallPart, text: string): string {
  return createHash("sha256")
    .update(JSON.stringify([call.toolName, call.input, text]))
    .digest("hex")
    .slice(0, 8);
}
