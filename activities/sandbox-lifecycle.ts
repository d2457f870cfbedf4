/**
 * The box from the workflow's side: open it, save its files, remove it.
 *
 * Idempotency key: the container's name, made from the session's id; checkpoints by (session, epoch, step).
 * Side effects: container, volume, checkpoint, events. Heartbeat: by timer. Retry class: engine and database.
 * Cancel: the finaliser runs in a scope that cannot be cancelled.
 */
import { ApplicationFailure } from "@temporalio/common";
import { inScope } from "./activity-scope.ts";
import type { BackgroundSaves } from "./session-box/background-save.ts";
import type { SandboxFacts, WorkspaceFacts } from "./contract.ts";
import type { AgentDeps } from "./deps.ts";
import { enterSession, enterToClose } from "./enter-session.ts";
import { fatal } from "./failures.ts";
import { SandboxLost } from "./sandbox/sandbox-lost.ts";
import { NOTHING_SAVED, saveBox } from "./session-box/save-box.ts";
import type { SessionBoxes } from "./session-box/session-box.ts";
import { appendEvents } from "./store/events.ts";
import type { Session } from "./store/sessions.ts";

const CLOSE_ATTEMPTS = 5;

export function createSandboxLifecycle(deps: AgentDeps, boxes: SessionBoxes, saves: BackgroundSaves) {
  return {
    openSandbox: (input: { step: number }): Promise<SandboxFacts> =>
      inScope(deps, async (scope) => {
        const session = await enterSession(deps.store, scope, { step: input.step, phase: "model" });
        const { box, workspace } = await boxes.open(session, input.step);
        const queue = deps.taskQueues.sandbox;
        return {
          container: box.container,
          workspace,
          ...(queue === undefined ? {} : { taskQueue: queue }),
        };
      }),

    saveWorkspace: (input: { step: number }): Promise<WorkspaceFacts> =>
      inScope(deps, async (scope) => {
        const session = await enterSession(deps.store, scope, {
          step: input.step + 1,
          phase: "model",
          round: "earlier",
        });
        await saves.settled(session.id);
        return saveBox(deps, boxes, session, input.step);
      }),

    closeSandbox: (input: { step: number }): Promise<WorkspaceFacts> =>
      inScope(deps, async (scope) => {
        // A run that was superseded leaves the box to its successor.
        const session = await enterToClose(deps.store, scope, input.step);
        if (!session?.container) return NOTHING_SAVED;
        const { container } = session;
        await saves.settled(session.id);
        return givingUp(scope, async () => {
          const saved = await saveBox(deps, boxes, session, input.step);
          boxes.forget(session.id);
          await deps.sandboxHost.remove(session.id);
          await emit(deps, session, [{ type: "sandbox:removed", step: input.step, data: { container } }]);
          return saved;
        });
      }),
  };
}

/**
 * An engine that is away for long does not keep a run from ending: the reaper removes the box when it is back. The
 * database is waited for, since the last step's files go there.
 */
async function givingUp<T>({ attempt }: { readonly attempt: number }, close: () => Promise<T>): Promise<T> {
  try {
    return await close();
  } catch (error) {
    const isAway =
      error instanceof SandboxLost ||
      (error instanceof ApplicationFailure && error.type === "SandboxUnavailable");
    if (!isAway || attempt < CLOSE_ATTEMPTS) throw error;
    throw fatal(
      "SandboxUnavailable",
      `The sandbox could not be closed in ${attempt} attempts: ${error.message} Its files are kept as last saved.`,
      error,
    );
  }
}

async function emit(
  deps: AgentDeps,
  session: Session,
  events: Parameters<typeof appendEvents>[3],
): Promise<void> {
  await appendEvents(deps.store.db, session.id, session.epoch, events);
  deps.notifier.wake(session.id);
}
