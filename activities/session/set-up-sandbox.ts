/**
 * The set-up of a session's project, before its first step.
 *
 * Idempotency key: the container, which says in an event that it is set up; a command's name in it, so that a second attempt
 * follows the first one's process. Side effects: the commands' own, an image that keeps what they made, events. Heartbeat: by
 * timer. Retry class: engine and database; a command that fails ends the run. Cancel: is heard at once; the command ends with
 * its sandbox.
 */
import { inScope } from "../runtime/activity-scope.ts";
import type { AgentDeps } from "../runtime/deps.ts";
import { enterSession } from "../runtime/enter-session.ts";
import { withoutLost, type SessionSandboxes } from "../workspace/session-sandbox.ts";
import type { SetUps } from "../workspace/set-up.ts";

export function createSetUpSandbox(deps: AgentDeps, sandboxes: SessionSandboxes, setUps: SetUps) {
  return (input: { readonly step: number }): Promise<void> =>
    inScope(deps, async (scope) => {
      const session = await enterSession(deps, scope, { step: input.step, phase: "model" });
      await withoutLost(sandboxes, session.id, async () => {
        const { sandbox } = await sandboxes.open(session, input.step, scope.signal);
        await setUps.ensure(session, sandbox, input.step, scope.signal);
      });
    });
}
