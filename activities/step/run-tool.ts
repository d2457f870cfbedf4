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
import type { RunToolInput, ToolFacts } from "../contract/activities.ts";
import type { AgentDeps } from "../runtime/deps.ts";
import { enterReading } from "../runtime/enter-session.ts";
import { missingFacts, unlessMissing } from "../runtime/note-missing.ts";
import { saveSandbox } from "../workspace/save-files.ts";
import type { SessionServices } from "../workspace/services.ts";
import { withoutLost, type SessionSandboxes } from "../workspace/session-sandbox.ts";
import { lookWhereOpen } from "../workspace/background-commands.ts";
import { createFolderNotes } from "./folder-notes.ts";
import {
  endedBefore,
  callHasEnded,
  waitsFor,
  storeResult,
  NEEDS_APPROVAL,
  rulesRefusal,
} from "./call-result.ts";
import { findAskedCall, noSuchCall, claimCall } from "../store/tool-calls.ts";
import { withFallback } from "../config/asked-model.ts";
import { findTool } from "../tools/index.ts";
import { readCall } from "../tools/reading/read-call.ts";
import { sessionTools } from "../tools/session-tools.ts";
import { FORGOTTEN, lostCall, type Invoked, performCall } from "./perform-call.ts";

/** @param services of the sandboxes, whose end is told at the next step's boundary */
export function createRunTool(
  deps: AgentDeps,
  sandboxes: SessionSandboxes,
  saves: BackgroundSaves,
  services?: SessionServices,
) {
  const notesFor = createFolderNotes(deps);
  return (input: RunToolInput): Promise<ToolFacts> =>
    inScope(deps, (scope) =>
      unlessMissing(deps, scope, input.step, {
        body: () => runTool(deps, { sandboxes, saves, notesFor, services }, scope, input),
        missing: missingFacts(input),
      }),
    );
}

interface Helpers {
  readonly sandboxes: SessionSandboxes;
  readonly saves: BackgroundSaves;
  readonly notesFor: ReturnType<typeof createFolderNotes>;
  readonly services: SessionServices | undefined;
}

async function runTool(
  deps: AgentDeps,
  { sandboxes, saves, notesFor, services }: Helpers,
  scope: ActivityScope,
  input: RunToolInput,
): Promise<ToolFacts> {
  const { db } = deps.store;
  const at = { step: input.step, phase: "tools" } as const;
  const read = () => findAskedCall(db, scope.sessionId, input);
  const [entered, stored] = await enterReading(deps, scope, at, read);
  // The result's size limit depends on the window of the model that will read it.
  const session = { ...entered, config: withFallback(entered.config, input.fallback) };
  const tools = sessionTools(deps.tools, session);
  const { calls } = stored;
  // Rules judge what will run: this worker's tools may read a call otherwise than those of the worker that stored it.
  const call = { ...stored.call, ...readCall(tools, stored.call) };
  const judged = { ...stored, call };
  const refused = await rulesRefusal(db, session, judged);
  if (refused === "ask") return NEEDS_APPROVAL;
  const isReadOnly = (name: string) => findTool(tools, name)?.readOnly ?? false;
  const claim = await claimCall(db, judged.row, isReadOnly);
  if (!claim) throw noSuchCall(session.id, input);
  const { before, fence } = claim;
  const startMs = performance.now();
  if (callHasEnded(before)) return endedBefore(db, before, call);

  const isOutside = before.mcpServer !== null || deps.ownTools?.byName.has(call.toolName) === true;
  if (fence > before.fence) await scope.claimed(isOutside);
  // An earlier attempt claimed the call, and its row does not say so: the database was restored from an older copy.
  const isForgotten = scope.hadClaim && before.status === "pending";
  const resumed = before.status === "running" || isForgotten;
  const claimed = { session, call, row: before, fence, resumed };
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
        performCall(deps, { sandboxes, services }, scope, { ...claimed, saved }),
      ),
    ));
  // Before the result is stored, which may tell of an end itself: its event is written by the look.
  if (session.hasCommands) await lookWhereOpen(deps, sandboxes)(session, input.step);
  if (invoked.asks !== undefined) return waitsFor(deps, invoked.asks);
  const durationMs = Math.round(performance.now() - startMs);
  const notes =
    refused === undefined && (invoked.outcome === "completed" || invoked.outcome === "error")
      ? await notesFor(
          session,
          { calls, index: input.index },
          async () => (await sandboxes.open(session, input.step)).sandbox,
        )
      : undefined;
  return storeResult(deps, scope, { session, call, row: before, fence, durationMs, notes }, invoked);
}
