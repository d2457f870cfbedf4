/**
 * The sandbox from the workflow's side: open it, set its project up, save its files, remove it.
 *
 * Idempotency key: the container's name, made from the session's id, which says in an event that it is set up; a set-up command's
 * name in it, so that a second attempt follows the first one's process; checkpoints by (session, epoch, step).
 * Side effects: container, volume, checkpoint, events; the set-up's own, an image that keeps what it made. Heartbeat: by timer.
 * Retry class: engine and database; a set-up's command that fails ends the run. Cancel: opening is given up, what it has made is
 * removed; a set-up's command ends with its sandbox; a save continues by itself; the finaliser runs in a scope that cannot be
 * cancelled.
 */
import { ApplicationFailure, ApplicationFailureCategory } from "@temporalio/common";
import { inScope, type ActivityScope } from "../runtime/activity-scope.ts";
import type { BackgroundSaves } from "../workspace/background-save.ts";
import type { CloseSandboxInput, SandboxFacts, WorkspaceFacts } from "../contract/activities.ts";
import type { AgentDeps } from "../runtime/deps.ts";
import { enterSession, enterToClose } from "../runtime/enter-session.ts";
import { fatal, type FailureType } from "../contract/failures.ts";
import { enterWaiting } from "./waiting.ts";
import { takeSandboxTools } from "../step/catalogues.ts";
import type { OpenBudget } from "../contract/limits.ts";
import { SandboxLost } from "../sandbox/sandbox.ts";
import { findRepository } from "../store/repositories.ts";
import type { Session } from "../store/sessions.ts";
import { whyCopy } from "../workspace/base.ts";
import { closeSandbox, parkSandbox } from "../workspace/close-sandbox.ts";
import { NOTHING_SAVED, saveSandbox } from "../workspace/save-files.ts";
import { withoutLost, type SessionSandboxes } from "../workspace/session-sandbox.ts";
import { abortable } from "../sandbox/shared-work.ts";
import { TRIES } from "../contract/tries.ts";

/** Whether the session's repository was not fetched yet, and can stand on a base here. */
async function beginsOnBase(deps: AgentDeps, { id, config }: Session): Promise<boolean> {
  if (config.repository === undefined || (await findRepository(deps.store.db, id)) !== undefined)
    return false;
  return (await whyCopy(deps, config)) === undefined;
}

/** @param ready the same sandboxes, each set up before it is returned */
export function createSandboxLifecycle(
  deps: AgentDeps,
  sandboxes: SessionSandboxes,
  ready: SessionSandboxes,
  saves: BackgroundSaves,
) {
  return {
    openSandbox: (input: { step: number }): Promise<SandboxFacts> =>
      inScope(deps, async (scope) => {
        const session = await enterSession(deps, scope, { step: input.step, phase: "model" });
        const { sandbox: taskQueue } = deps.taskQueues;
        // It is opened with its repository, on a base that is not chosen yet: see fetch-repository.ts.
        if (await beginsOnBase(deps, session))
          return { container: deps.sandboxHost.nameOf?.(session.id) ?? session.id, taskQueue };
        const { sandbox } = await sandboxes.open(session, input.step, scope.signal);
        await takeSandboxTools(deps, scope, session, { step: input.step, sandbox });
        return { container: sandbox.container, taskQueue };
      }),

    /** The set-up of the session's project, before its first step: see workspace/set-up.ts. */
    setUpSandbox: (input: { step: number }): Promise<void> =>
      inScope(deps, async (scope) => {
        const session = await enterSession(deps, scope, { step: input.step, phase: "model" });
        await withoutLost(ready, session.id, () => ready.open(session, input.step, scope.signal));
      }),

    saveWorkspace: (input: { step: number }): Promise<WorkspaceFacts> =>
      inScope(deps, async (scope) => {
        const session = await enterSession(deps, scope, {
          step: input.step + 1,
          phase: "model",
          round: "earlier",
        });
        // A cancel returns at once; the save continues, and the run's end waits for it before the last one.
        const save = saves.saving(session.id, () => saveSandbox(deps, sandboxes, session, input.step));
        return abortable(save, scope.signal);
      }),

    parkSandbox: (input: { step: number; afterMs: number; budget?: OpenBudget }): Promise<WorkspaceFacts> =>
      inScope(deps, async (scope) => {
        const session = await enterWaiting(deps, scope, input);
        // Temporal's server keeps the time until the next attempt, so no slot and no timer is used meanwhile. An attempt may come
        // early: after a lost worker, or as a person asks for it.
        const leftMs = input.afterMs - scope.sinceAskedMs;
        if (leftMs > 0) throw notYet(leftMs);
        if (scope.signal.aborted) return scope.stopped();
        await saves.settled(session.id);
        return parkSandbox(deps, sandboxes, session, input.step);
      }),

    closeSandbox: (input: CloseSandboxInput): Promise<WorkspaceFacts> =>
      inScope(deps, async (scope) => {
        // A run that was superseded leaves the sandbox to its successor.
        const entered = await enterToClose(deps, scope, input);
        if (!entered) return NOTHING_SAVED;
        const { session, step } = entered;
        await saves.settled(session.id);
        return givingUp(scope, () =>
          closeSandbox(deps, sandboxes, session, { step, mayPark: input.mayPark === true }),
        );
      }),
  };
}

/** Benign: no failure in logs and figures. Source: Temporal's samples, polling with long pauses by retries. */
function notYet(afterMs: number): ApplicationFailure {
  return ApplicationFailure.create({
    type: "NotYetDue" satisfies FailureType,
    message:
      "No error: the session waits. If it still does after this time, the files are saved and the sandbox is given up until it goes on.",
    nextRetryDelay: afterMs,
    category: ApplicationFailureCategory.BENIGN,
  });
}

/**
 * An engine that is away for long does not keep a run from ending: the reaper removes the sandbox when it is back. The
 * database is waited for, since the last step's files go there.
 */
async function givingUp<T>({ tries }: Pick<ActivityScope, "tries">, close: () => Promise<T>): Promise<T> {
  try {
    return await close();
  } catch (error) {
    const isAway =
      error instanceof SandboxLost ||
      (error instanceof ApplicationFailure && error.type === "SandboxUnavailable");
    if (!isAway || tries < TRIES.beforeLeftBehind) throw error;
    throw fatal(
      "SandboxUnavailable",
      `The sandbox could not be closed in ${tries} attempts: ${error.message} Its files are kept as last saved.`,
      error,
    );
  }
}
