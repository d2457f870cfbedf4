/** Calls to the host that has the sandbox, and what follows if that host is gone. */
import { ActivityFailure, ApplicationFailure, TimeoutFailure } from "@temporalio/workflow";
import type { AgentState } from "./agent-state.ts";

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
export async function onHost<T>(
  run: Hosted,
  reopen: () => Promise<void>,
  action: () => Promise<T>,
): Promise<T> {
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
export function isHostLost(error: unknown): boolean {
  if (!(error instanceof ActivityFailure)) return false;
  const { cause } = error;
  if (cause instanceof TimeoutFailure) return cause.timeoutType === "SCHEDULE_TO_START";
  return cause instanceof ApplicationFailure && cause.type === "SandboxUnavailable";
}
