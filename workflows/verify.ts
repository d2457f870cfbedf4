/** Commands decide whether the work is done: they run after an answer that says so, and the model is told what failed. */
import { CancellationScope, condition } from "@temporalio/workflow";
import type { RunPolicy } from "../activities/contract/run-policy.ts";
import { isUnverified } from "../activities/contract/verify.ts";
import { wasStopped, type Outcome } from "./outcome.ts";
import { enterPhase, hasMessages, interruptible, type Run } from "./run.ts";
import { performOnHost } from "./sandbox.ts";

/**
 * Verifies the work, if the session has commands for that.
 * @param more.isLast the run ends whatever they say
 * @returns whether the model works on: it was told of a failure, or a person has spoken meanwhile
 */
export async function verifyWork(
  run: Run,
  { verify: settings }: Pick<RunPolicy, "verify">,
  { isLast = false }: { readonly isLast?: boolean } = {},
): Promise<boolean> {
  const { state } = run;
  if (settings === undefined || state.deadline === "over") return false;
  const { step, verify } = state;
  const { round, last } = verify;
  enterPhase(run, "verifying");
  const { tree, signature } = last ?? {};
  const seen = await interruptible(run, () =>
    unlessSpokenTo(run, () =>
      performOnHost(run, "verifyWork", `step ${step} · verify`, {
        step,
        round,
        isLast: isLast || round >= settings.rounds ? true : undefined,
        before: tree === undefined || signature === undefined ? undefined : { tree, signature },
      }),
    ),
  );
  if (seen === undefined) return true;
  verify.last = seen;
  if (seen.outcome === "failed") state.remark = `Not verified: ${seen.reason ?? ""}`;
  if (seen.goesOn !== true) return false;
  verify.round += 1;
  return true;
}

/** Runs the commands before the first step, if the session wants that: what fails now is not held against its work. */
export async function seeBaseline(run: Run, { verify: settings }: Pick<RunPolicy, "verify">): Promise<void> {
  const { step } = run.state;
  if (settings?.baseline !== true || step > 0) return;
  await interruptible(run, () =>
    performOnHost(run, "verifyWork", "verify before the first step", {
      step,
      round: 0,
      isLast: true,
      baseline: true,
    }),
  );
}

/** @returns undefined if a message came before the result: it is read first, and the work is verified after the next answer */
async function unlessSpokenTo<T>(run: Run, body: () => Promise<T>): Promise<T | undefined> {
  const outer = CancellationScope.current();
  const inner = new CancellationScope({ cancellable: true });
  try {
    return await inner.run(() => {
      condition(() => hasMessages(run)).then(
        () => inner.cancel(),
        () => undefined,
      );
      return body();
    });
  } catch (error) {
    if (!outer.consideredCancelled && hasMessages(run) && wasStopped(error)) return undefined;
    throw error;
  } finally {
    inner.cancel();
  }
}

/** With what the newest look at the work saw, whatever ended the run since. */
export function withVerified({ state }: Run, outcome: Outcome): Outcome {
  const { last } = state.verify;
  return last === undefined ? outcome : { ...outcome, verified: last };
}

/** Why the work is not delivered: it is not verified, and then it is held. Undefined: it is delivered. */
export function heldBack({ policy }: Run, { verified }: Outcome): string | undefined {
  const { verify } = policy ?? {};
  if (verify === undefined || verified === undefined || !isUnverified(verified.outcome, verify))
    return undefined;
  // What is open already is not made worse: the follower tells people.
  const isHeld =
    verify.holds === true || verified.outcome === "changed-checks" || policy?.git?.follow === "on";
  return isHeld ? `its work is not verified: ${verified.reason ?? ""}` : undefined;
}
