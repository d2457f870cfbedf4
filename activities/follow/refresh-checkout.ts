/**
 * Brings the newest commits of a followed pull request's branch and of its base into the sandbox, before the step that reads what is
 * wrong. The counterpart of publishing: the sandbox has no credential.
 *
 * Idempotency key: the commits themselves. Side effects: the mirror on the worker's disk, objects and references in the workspace; the
 * session's branch, if that is a step forward and nothing is changed. Heartbeat: by timer. Retry class: remote, engine, database.
 */
import { retryable } from "../contract/failures.ts";
import { readHeads, showHeads, whoseHead } from "../git/followed-branch.ts";
import { GitFailed } from "../git/run-git.ts";
import { inScope } from "../runtime/activity-scope.ts";
import { accessOf, type AgentDeps } from "../runtime/deps.ts";
import { enterSession } from "../runtime/enter-session.ts";
import { findFollow, listFollowRounds } from "../store/follows.ts";
import { findRepository } from "../store/repositories.ts";
import { withoutLost, type SessionSandboxes } from "../workspace/session-sandbox.ts";
import { awayFacts, pushesTo } from "./followed.ts";

export function createRefreshCheckout(deps: AgentDeps, sandboxes: SessionSandboxes) {
  return (input: { readonly step: number }): Promise<void> =>
    inScope(deps, async (scope) => {
      const { db } = deps.store;
      const session = await enterSession(deps, scope, { step: input.step, phase: "model" });
      const [row, repository] = [await findFollow(db, session.id), await findRepository(db, session.id)];
      if (row === undefined || repository === undefined || row.base === null) return;
      const { branch, base } = row;
      const { signal } = scope;
      const access = accessOf(deps);
      try {
        const heads = await readHeads(access, repository.url, { branch, base, signal });
        const own = (await pushesTo(db, session, branch)).filter(({ isRefused }) => !isRefused);
        const whose = await whoseHead(access, heads, own);
        const merges = session.config.repository?.follow?.onForeignPush === "merge";
        const open = (await listFollowRounds(db, session.id)).find(({ endedAt }) => endedAt === null);
        // A person has sent the session on top of these commits.
        const isSent = open !== undefined && open.head === heads.head;
        const mayAdvance = whose === "ours" || (whose === "on-top" && (merges || isSent));
        const known = repository.baseCommit;
        await withoutLost(sandboxes, session.id, async () => {
          const { sandbox } = await sandboxes.open(session, input.step, signal);
          await showHeads(access, sandbox, heads, { branch, base, known, mayAdvance, signal });
        });
      } catch (error) {
        signal.throwIfAborted();
        if (!(error instanceof GitFailed)) throw error;
        throw retryable(
          "RepositoryUnavailable",
          `The pull request's newest commits cannot be fetched: ${awayFacts(error).why}. It is tried again.`,
        );
      }
    });
}
