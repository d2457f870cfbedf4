/** How a tool call learns that it must stop, and its result if a person stopped it. */
import type { ActivityScope } from "../runtime/activity-scope.ts";
import { LeaveRunning } from "../tools/failure.ts";
import type { InvokedTool } from "../tools/invoke.ts";

/**
 * How long a stopped call is waited for, in ms. It normally ends in less than half a second; this is ten times as long, for a busy
 * machine. After that the sandbox counts as not answering.
 */
const STOP_GRACE_MS = 5_000;
const UNCONFIRMED =
  "The user stopped this call, and the sandbox has not confirmed that it ended. Look at what it has done before you repeat it.";

/**
 * Only a person's stop ends the command. During a deploy or a pause the command continues, and the next attempt follows it.
 * @returns `stopped` settles when the call is no longer waited for; it rejects with the cancellation if the command continues
 */
export function stopOfCall(scope: ActivityScope): {
  readonly signal: AbortSignal;
  readonly stopped: Promise<InvokedTool>;
} {
  const stop = new AbortController();
  const { promise: stopped, resolve, reject } = Promise.withResolvers<InvokedTool>();
  const onAbort = () => {
    if (scope.stoppedByPerson()) {
      stop.abort(scope.signal.reason);
      setTimeout(() => resolve(interrupted(UNCONFIRMED)), STOP_GRACE_MS).unref();
    } else {
      stop.abort(new LeaveRunning());
      scope.stopped().catch(reject);
    }
  };
  if (scope.signal.aborted) onAbort();
  scope.signal.addEventListener("abort", onAbort, { once: true });
  return { signal: stop.signal, stopped };
}

export const interrupted = (text: string): InvokedTool => ({
  outcome: "interrupted",
  text,
  files: [],
  exitCode: undefined,
  truncated: false,
});

/** Of a call whose row is older than its claim, as after a restore. */
export const FORGOTTEN = "The record that this call had begun is lost";

/** For a call whose activity was completed or failed from outside, or whose claim is lost with what its server knew of it. */
export const lostCall = (why: string): InvokedTool => ({
  outcome: "unknown",
  text: `${why}, and how it ended is not known. It may have been run: look at what it changed before you repeat it.`,
  files: [],
  exitCode: undefined,
  truncated: false,
});
