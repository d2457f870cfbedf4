/** The calls of a step. */
import { CancellationScope } from "@temporalio/workflow";
import type { CallFacts, RunToolInput, ToolFacts } from "../activities/contract/activities.ts";
import { stuckVerdict } from "../activities/contract/stuck.ts";
import {
  enterPhase,
  interruptible,
  keepsInterrupt,
  openSandbox,
  optionsOf,
  showDetails,
  type Run,
} from "./actions.ts";
import { applyToolResult } from "./agent-state.ts";
import { askedModel } from "./fallback.ts";
import { onHost } from "./lost-host.ts";
import { perform } from "./proxies.ts";

/** All calls of a step at once; returns when each has its result. @returns true where the agent is stuck for good */
export async function runTools(run: Run, calls: readonly CallFacts[]): Promise<boolean> {
  const { state } = run;
  enterPhase(run, "running tools");
  if (!keepsInterrupt(run)) await run.opening;
  const { step } = state;
  const { fallback } = askedModel(state, run.policy);
  const asked = fallback === undefined ? {} : { fallback };
  await interruptible(run, async () => {
    const scope = CancellationScope.current();
    if (state.interrupting) scope.cancel();
    // The sandbox may take minutes: a person who interrupts does not wait for it.
    await Promise.race([run.opening, scope.cancelRequested]);
    const results = await Promise.allSettled(
      calls.map(async (call, index) => {
        applyToolResult(state, call, await performCall(run, call, { step, index, ...asked }));
        showDetails(run);
      }),
    );
    const failure = results.find((result) => result.status === "rejected");
    if (failure) throw failure.reason;
  });
  state.interrupting = false;
  const verdict = stuckVerdict(state.recentCalls, state.loopWarned);
  if (verdict === "warn") {
    state.loopWarningDue = true;
    state.loopWarned = true;
    state.recentCalls = [];
  }
  return verdict === "stop";
}

/** One call, by whoever performs it. */
function performCall(run: Run, call: CallFacts, input: RunToolInput): Promise<ToolFacts> {
  const summary = `step ${input.step} · ${call.name}: ${call.about}`;
  return onHost(
    run,
    () => openSandbox(run),
    () => perform("runTool", optionsOf(run), summary, input),
  );
}
