/** The set-up of a session's project, before its first step and after each new start. */
import { enterPhase, openSandbox, performOnHost, type Run } from "./actions.ts";

/** Runs the commands of `sandbox.setup` if that was not done yet; a failure ends the run. */
export async function setUpSandbox(run: Run): Promise<void> {
  if (run.policy?.setupTimeoutMs === undefined) return;
  const step = run.state.step + 1;
  enterPhase(run, "setting up");
  run.opening ??= openSandbox(run);
  await run.opening;
  await performOnHost(run, "setUpSandbox", "set up the project", { step });
}
