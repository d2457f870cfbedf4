/**
 * Delivers the session's work: a push of its branch, or a pull request.
 *
 * Idempotency key: the commit and the branch. A second attempt finds nothing to commit, pushes what is there already, and
 * finds the pull request. Side effects: a commit in the workspace, the relay on the worker's disk, the remote, rows and
 * events. Heartbeat: by timer. Retry class: remote, engine, database; what is refused is a result. Cancel: git is ended.
 */
import { inScope } from "../runtime/activity-scope.ts";
import { bytesOf } from "../config/sizes.ts";
import { fatal } from "../contract/failures.ts";
import type { Publication, PublishInput } from "../contract/delivery.ts";
import { accessOf } from "./fetch-repository.ts";
import { deliverPullRequest } from "./deliver-pull-request.ts";
import { pushedBefore, record, refuse, type Delivery } from "./publication.ts";
import { pushLfs } from "../git/lfs-push.ts";
import { LfsFailed } from "../git/lfs-store.ts";
import { updateMirror } from "../git/mirror.ts";
import { pushCommit } from "../git/push.ts";
import { unpushedSubmodule } from "../git/fetch-parts.ts";
import { commitsSince, openRelay, receive, type Relay } from "../git/relay.ts";
import { GitFailed } from "../git/run-git.ts";
import type { CommandSandbox } from "../sandbox/own-command.ts";
import { prepareWork, type Prepared } from "../git/sandbox-git.ts";
import type { Refusal } from "../git/trouble.ts";
import type { AgentDeps } from "../runtime/deps.ts";
import { enterSession } from "../runtime/enter-session.ts";
import { appendEvents } from "../store/events.ts";
import { findRepository } from "../store/repositories.ts";
import { withoutLost, type SessionSandboxes } from "../workspace/session-sandbox.ts";

const COMMIT_MESSAGE = "Commit what the session left uncommitted";

export function createPublish(deps: AgentDeps, sandboxes: SessionSandboxes) {
  return (input: PublishInput): Promise<Publication> =>
    inScope(deps, async (scope) => {
      const session = await enterSession(deps, scope, {
        step: input.step + 1,
        phase: "model",
        round: "earlier",
      });
      const git = session.config.repository;
      const repository = await findRepository(deps.store.db, session.id);
      if (git === undefined || repository === undefined)
        throw fatal("BadConfiguration", "This session has no repository to deliver its work to.");
      const branch = input.branch ?? repository.branch;
      // A planning session cannot change files.
      if (session.config.plan === true) return { outcome: "nothing", branch };
      const delivery = { deps, scope, session, git, repository, branch, input };
      return input.kind === "push" ? push(delivery, sandboxes) : deliverPullRequest(delivery);
    });
}

async function push(delivery: Delivery, sandboxes: SessionSandboxes): Promise<Publication> {
  const { deps, scope, session, git, repository, branch, input } = delivery;
  const { url, baseCommit: base } = repository;
  return withoutLost(sandboxes, session.id, async () => {
    const { sandbox } = await sandboxes.open(session, input.step + 1, scope.signal);
    const rest = input.end === true ? { message: COMMIT_MESSAGE, author: git.author } : undefined;
    const prepared = await prepareWork(sandbox, { base, commit: rest, lfs: git.lfs });
    if ("trouble" in prepared) return refuse(delivery, { commit: "", refused: prepared.trouble });
    await reportLeftOut(delivery, prepared);
    const { head } = prepared;
    const pushed = await pushedBefore(delivery);
    if (prepared.ahead === 0 && pushed.length === 0) return { outcome: "nothing", branch };
    if (pushed[0]?.commit === head && pushed[0].epoch === session.epoch && input.end !== true)
      return { outcome: "nothing", branch };

    const access = accessOf(deps);
    // Without the mirror the commits are taken in full: the push itself reports what is wrong with the remote.
    const mirror = await updateMirror(access, url, { wants: base, signal: scope.signal }).catch(
      (error: unknown) => {
        if (error instanceof GitFailed) return "/nonexistent";
        throw error;
      },
    );
    const relay = await openRelay(access, session.id, mirror, head);
    const received = await receive(relay, sandbox, {
      head,
      base: prepared.ahead >= 0 ? base : undefined,
      maxBytes: bytesOf(git.maxBundle),
      signal: scope.signal,
    });
    if ("refused" in received) return refuse(delivery, { commit: head, ...received });
    const { commit } = received;
    const further = await deliverFurther(delivery, { relay, sandbox, mirror, commit });
    if (further !== undefined) return refuse(delivery, { commit, ...further });
    const result = await pushCommit(relay, {
      url,
      branch,
      commit,
      allowDefaultBranch: git.allowDefaultBranch,
      abandoned: pushed.filter(({ epoch }) => epoch < session.epoch).map((row) => row.commit),
      signal: scope.signal,
    });
    if ("refused" in result) return refuse(delivery, { commit, ...result });
    const commits = await commitsSince(relay, base, commit);
    const forced = result.forced ? { forced: true as const } : {};
    const event = {
      type: "git:pushed",
      step: input.step,
      data: { branch, commit, commits, ...forced },
    } as const;
    await record(delivery, { kind: "push", commit, status: "done" }, event);
    return { outcome: "done", branch, commit, commits };
  });
}

/**
 * Delivers what the commits refer to but do not contain: files in Git LFS are uploaded to their store first; commits of
 * submodules must be on their remotes already.
 * @returns why the commits cannot be pushed; undefined if they can
 */
async function deliverFurther(
  { scope, session, git, repository }: Delivery,
  from: {
    readonly relay: Relay;
    readonly sandbox: CommandSandbox;
    readonly mirror: string;
    readonly commit: string;
  },
): Promise<Refusal | undefined> {
  const { relay, sandbox, mirror, commit } = from;
  const { signal } = scope;
  const what = { named: git, network: session.config.sandbox, base: repository.baseCommit, commit };
  const missing = git.submodules ? await unpushedSubmodule(relay, what, signal) : undefined;
  if (missing !== undefined || !git.lfs) return missing;
  try {
    const maxBytes = bytesOf(git.maxBundle);
    await pushLfs(relay, sandbox, { ...what, mirror, maxBytes, signal });
    return undefined;
  } catch (error) {
    if (!(error instanceof LfsFailed)) throw error;
    return { refused: `files in Git LFS are not pushed: ${error.message}`, isPassing: error.isPassing };
  }
}

/** Records files that are in no commit. Only at the end: while the agent works, it may still commit them. */
async function reportLeftOut(
  { deps, session, input }: Delivery,
  { leftOut, leftOutCount }: Prepared,
): Promise<void> {
  if (leftOutCount === 0) return;
  const files = leftOut.map((file) => ({ ...file, path: deps.sanitizer.clean(file.path) }));
  await appendEvents(deps.store.db, session.id, session.epoch, [
    { type: "git:left-out", step: input.step, data: { count: leftOutCount, files } },
  ]);
  deps.notifier.wake(session.id);
}
