/** The session's sandbox: opened, set up, and called on the host that has it, also if that host is gone. */
import { ActivityFailure, ApplicationFailure, isCancellation, TimeoutFailure } from "@temporalio/workflow";
import type { AgentActivities, SandboxFacts } from "../activities/contract/activities.ts";
import type { RunPolicy } from "../activities/contract/run-policy.ts";
import { limitReached } from "./loop-policy.ts";
import { wasStopped } from "./outcome.ts";
import type { AgentState } from "./agent-state.ts";
import { perform, type Bound } from "./proxies.ts";
import { enterPhase, optionsOf, showDetails, type Run } from "./run.ts";

/** Never fails the run: a tool that needs the sandbox opens it again and reports what is wrong. */
export async function openSandbox(run: Run): Promise<void> {
  const step = run.state.step + 1;
  const open = (): Promise<SandboxFacts> =>
    perform("openSandbox", optionsOf(run), "open the sandbox", { step });
  try {
    const { container, taskQueue } = await open().catch((error: unknown) => {
      if (run.state.sandbox === undefined || !isHostLost(error)) throw error;
      run.state.sandbox = undefined;
      return open();
    });
    run.state.sandbox = { container, taskQueue };
    showDetails(run);
  } catch (error) {
    if (!isCancellation(error))
      run.state.remark = "The sandbox could not be opened; the first tool call tries again.";
  }
}

/** As `perform`, on the host that has the sandbox. If that host is lost, the sandbox is opened on another one. */
export function performOnHost<Name extends Bound>(
  run: Run,
  name: Name,
  summary: string,
  ...args: Parameters<AgentActivities[Name]>
): Promise<Awaited<ReturnType<AgentActivities[Name]>>> {
  return onHost(
    run,
    () => openSandbox(run),
    () => perform(name, optionsOf(run), summary, ...args),
  );
}

/** The part of a run that knows its sandbox. */
interface Hosted {
  readonly state: Pick<AgentState, "sandbox" | "remark">;
  opening: Promise<void> | undefined;
}

/** How many hosts may be lost during one call. */
const MAX_MOVES = 3;

/**
 * Performs `action` on the host that has the sandbox. If that host is lost, `reopen` recreates the sandbox on another host, once
 * for all calls that wait for it, and `action` runs there; the ledger says whether the call had begun.
 */
async function onHost<T>(run: Hosted, reopen: () => Promise<void>, action: () => Promise<T>): Promise<T> {
  for (let moves = 0; ; moves += 1) {
    const lost = run.state.sandbox;
    try {
      return await action();
    } catch (error) {
      if (lost?.taskQueue === undefined || moves >= MAX_MOVES || !isHostLost(error)) throw error;
      if (run.state.sandbox === lost) {
        run.state.sandbox = undefined;
        run.state.remark = `The sandbox's host (${lost.taskQueue}) is lost; the sandbox is being recreated on another.`;
        run.opening = reopen();
      }
      await run.opening;
      // It was not opened, or a person stopped it: the next step tries again.
      if (run.state.sandbox === undefined) run.opening = undefined;
    }
  }
}

/** True if no worker took the call from the host's queue in time, or its Docker engine stayed away through all attempts. */
function isHostLost(error: unknown): boolean {
  if (!(error instanceof ActivityFailure)) return false;
  const { cause } = error;
  if (cause instanceof TimeoutFailure) return cause.timeoutType === "SCHEDULE_TO_START";
  return cause instanceof ApplicationFailure && cause.type === "SandboxUnavailable";
}

/**
 * Runs the commands of `sandbox.setup` before the first step and after each new start, if that was not done yet; a failure ends the
 * run.
 */
export async function setUpSandbox(run: Run): Promise<void> {
  if (run.policy?.timeouts.setupMs === undefined) return;
  const step = run.state.step + 1;
  enterPhase(run, "setting up");
  run.opening ??= openSandbox(run);
  await run.opening;
  await performOnHost(run, "setUpSandbox", "set up the project", { step });
}

/**
 * Looks once in a run, when the model gives its last answer, whether it left something in the background.
 * @returns whether the model has something to read about that, in a further step; its next last answer counts
 */
export async function tellsOfCommands(run: Run, policy: RunPolicy): Promise<boolean> {
  const { state } = run;
  const { commands } = state;
  // At a limit there is no step left in which it could be read.
  if (commands.started === 0 || commands.isTold || limitReached(state, policy) !== undefined) return false;
  state.commands = { ...commands, isTold: true };
  const { step, compaction } = state;
  const summary = `step ${step} · look at the commands in the background`;
  const { isTold } = await perform("checkCommands", optionsOf(run), summary, {
    step,
    round: compaction.round,
  }).catch((error: unknown) => {
    if (wasStopped(error)) throw error;
    // Their sandbox or its host is away: the answer counts as it is.
    return { isTold: false };
  });
  return isTold;
}
