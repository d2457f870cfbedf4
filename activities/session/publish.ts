/**
 * Delivers the session's work: a push of its branch, a pull request, or a review that is written into one.
 *
 * Idempotency key: the commit and the branch. A second attempt finds nothing to commit, pushes what is there already, and
 * finds the pull request. Side effects: a commit in the workspace, the relay on the worker's disk, the remote, rows and
 * events. Heartbeat: by timer. Retry class: remote, engine, database; what is refused is a result. Cancel: git is ended.
 */
import { inScope } from "../runtime/activity-scope.ts";
import { areFormed } from "../config/commit-settings.ts";
import { parseBytes } from "../config/setting-values.ts";
import { listLeftOut, type Publication, type PublishInput } from "../contract/delivery.ts";
import { fatal } from "../contract/failures.ts";
import { whyNoPush } from "../follow/followed.ts";
import { prepareDelivery } from "./prepare-delivery.ts";
import { announceIfInCharge, pushesOf, record, refuse, takenOver, type Delivery } from "./publication.ts";
import { deliverReview } from "./publish-review.ts";
import { formCommits, type FormedCommits, handBack } from "./form-commits.ts";
import { deliverPullRequest } from "./pull-request.ts";
import { pushLfs } from "../git/lfs.ts";
import { LfsFailed } from "../git/lfs-store.ts";
import { updateMirror } from "../git/mirror.ts";
import { pushCommit } from "../git/push.ts";
import { unpushedSubmodule } from "../git/fetch-parts.ts";
import { commitsSince, openRelay, receive, type Relay } from "../git/relay.ts";
import { GitFailed } from "../git/run-git.ts";
import type { CommandSandbox } from "../sandbox/own-command.ts";
import type { Prepared } from "../git/sandbox-git.ts";
import type { Refusal } from "../git/trouble.ts";
import { accessOf, type AgentDeps } from "../runtime/deps.ts";
import { enterSession } from "../runtime/enter-session.ts";
import { appendEvents } from "../store/events.ts";
import { findRepository, settleRefusals, type PublicationRow } from "../store/repositories.ts";
import { withoutLost, type SessionSandboxes } from "../workspace/session-sandbox.ts";

const MAX_LISTED_CHARS = 250;
const NOT_VERIFIED =
  "the files are not those that were verified: something changed them afterwards. Send a message (longhaul say), so that they are verified again";
const REVIEWS_ONLY =
  "it reviews a pull request, and nothing of such a session is pushed. To have something changed, start a session: longhaul run";
/** Begins the reason if work is outside of HEAD. */
const BEHIND = "work of the session is not on the branch that is delivered";

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
      const delivery = { deps, scope, session, git, repository, branch, input };
      // Whatever the model has done, and whoever asks.
      if (session.config.reviews !== undefined && input.kind !== "review")
        return refuse(delivery, { commit: "", refused: REVIEWS_ONLY });
      // A planning session cannot change files.
      if (session.config.plan === true) return { outcome: "nothing", branch };
      if (input.kind === "review") return deliverReview(delivery);
      return input.kind === "push" ? push(delivery, sandboxes) : deliverPullRequest(delivery);
    });
}

async function push(delivery: Delivery, sandboxes: SessionSandboxes): Promise<Publication> {
  const { deps, scope, session, branch, input } = delivery;
  return withoutLost(sandboxes, session.id, async () => {
    const { sandbox } = await sandboxes.open(session, input.step + 1, scope.signal);
    const pushes = await pushesOf(delivery);
    const why = await whyNoPush(deps, session.id, scope, takenOver(delivery)?.number);
    if (why !== undefined) return refuse(delivery, { commit: "", refused: why });
    const prepared = await prepareDelivery(delivery, sandbox, pushes, { atEnd: input.end === true });
    if ("trouble" in prepared) return refuse(delivery, { commit: "", refused: prepared.trouble });
    if (input.tree !== undefined && prepared.tree !== input.tree)
      return refuse(delivery, { commit: prepared.head, refused: NOT_VERIFIED });
    await reportLeftOut(delivery, prepared);
    const [delivered] = pushes.filter(({ status }) => status === "done");
    const { head, ahead } = prepared;
    if (head === "" || (ahead === 0 && delivered === undefined)) return conclude(delivery, prepared, pushes);
    if (delivered?.commit === head && delivered.epoch === session.epoch && input.end !== true)
      return { outcome: "nothing", branch };
    const publication = await send(delivery, { sandbox, prepared, pushes });
    return publication.outcome === "refused"
      ? publication
      : conclude(delivery, prepared, pushes, publication);
  });
}

/** @returns `nothing` if the remote has the commit, and that was recorded */
async function send(
  delivery: Delivery,
  work: {
    readonly sandbox: CommandSandbox;
    readonly prepared: Prepared;
    readonly pushes: readonly PublicationRow[];
  },
): Promise<Publication> {
  const { deps, scope, session, git, repository, branch } = delivery;
  const { sandbox, prepared, pushes } = work;
  const { url, baseCommit: base } = repository;
  const { head, ref } = prepared;
  const access = accessOf(deps);
  // Without the mirror the commits are taken in full: the push itself reports what is wrong with the remote.
  const wants = areFormed(git) ? {} : { wants: base };
  const mirror = await updateMirror(access, url, { ...wants, signal: scope.signal }).catch(
    (error: unknown) => {
      if (error instanceof GitFailed) return "/nonexistent";
      throw error;
    },
  );
  const relay = await openRelay(access, session.id, mirror, head);
  const received = await receive(relay, sandbox, {
    head,
    ref,
    base: prepared.ahead >= 0 ? base : undefined,
    maxBytes: parseBytes(git.maxBundle),
    signal: scope.signal,
  });
  if ("refused" in received) return refuse(delivery, { commit: head, ...received });
  const formed = await formCommits(delivery, { relay, mirror, commit: received.commit, pushes });
  if ("refused" in formed) return refuse(delivery, { commit: head, ...formed });
  const { commit } = formed;
  const further = await deliverFurther(delivery, { relay, sandbox, mirror, commit });
  if (further !== undefined) return refuse(delivery, { commit, ...further });
  await announceIfInCharge(delivery, { kind: "push", commit });
  const isOld = ({ epoch, status }: PublicationRow) => epoch < session.epoch || status !== "done";
  const result = await pushCommit(relay, {
    url,
    branch,
    commit,
    allowDefaultBranch: git.allowDefaultBranch,
    // What it began with is never its own.
    abandoned: pushes.flatMap((row) => (isOld(row) && row.commit !== base ? row.commit : [])),
    delivered: pushes.filter((row) => !isOld(row)).map((row) => row.commit),
    signal: scope.signal,
  });
  if ("refused" in result) return refuse(delivery, { commit, ...result });
  const commits = await commitsSince(relay, base, commit);
  const isDone = await recordPushed(delivery, work, { formed, commits, ...result });
  await handBack(sandbox, relay, { ref, head, formed });
  return isDone ? { outcome: "done", branch, commit, commits } : { outcome: "nothing", branch };
}

/** @returns false if the remote had the commit, and another run has recorded that */
async function recordPushed(
  delivery: Delivery,
  { prepared: { ref }, pushes }: { readonly prepared: Prepared; readonly pushes: readonly PublicationRow[] },
  pushed: {
    readonly formed: FormedCommits;
    readonly commits: number;
    readonly forced: boolean;
    readonly wasThere?: true;
  },
): Promise<boolean> {
  const { session, branch, input, scope } = delivery;
  const { formed, commits, forced, wasThere } = pushed;
  const { commit, remarks } = formed;
  const before = pushes.find((row) => row.commit === commit && row.status === "done");
  if (wasThere === true && before?.epoch === session.epoch) return before.runId === scope.runId;
  const data = {
    branch,
    commit,
    commits,
    forced: forced ? (true as const) : undefined,
    from: ref === "HEAD" ? undefined : ref.replace("refs/heads/", ""),
    remarks: remarks.length === 0 ? undefined : remarks,
  };
  await record(
    delivery,
    { kind: "push", commit, status: "done", remarks: data.remarks },
    { type: "git:pushed", step: input.step, data },
  );
  return true;
}

/** What the delivery comes to. Work that stays behind is a refusal, unless the session's own commits were delivered. */
async function conclude(
  delivery: Delivery,
  { fresh, leftOut, leftOutCount, isElsewhere }: Prepared,
  pushes: readonly PublicationRow[],
  result?: Publication,
): Promise<Publication> {
  const { deps, scope, session, branch, input } = delivery;
  const publication = result ?? { outcome: "nothing", branch };
  if (input.end !== true) return publication;
  const isDone = publication.outcome === "done";
  const ofThisRun = pushes.some(({ status, runId }) => status === "done" && runId === scope.runId);
  if ((isDone && fresh > 0) || ofThisRun) return publication;
  const isBehind = isElsewhere || (!isDone && leftOut.some(({ reason }) => reason !== "not-restored"));
  if (isBehind) {
    const refused = `${BEHIND}: ${listLeftOut(leftOut, leftOutCount, MAX_LISTED_CHARS)}. Let the session bring it onto its branch (longhaul say), or take its files (longhaul pull)`;
    return refuse(delivery, { commit: "", refused });
  }
  if (isDone) return publication;
  const [last] = pushes;
  // Such as files in a worktree outside of /workspace, which are gone with the sandbox.
  if (last?.status === "refused" && last.step === input.step && last.reason?.startsWith(BEHIND) === true)
    return refuse(delivery, { commit: "", refused: last.reason });
  await settleRefusals(deps.store.db, session.id, branch);
  return publication;
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
    const maxBytes = parseBytes(git.maxBundle);
    await pushLfs(relay, sandbox, { ...what, mirror, maxBytes, signal });
    return undefined;
  } catch (error) {
    if (!(error instanceof LfsFailed)) throw error;
    return { refused: `files in Git LFS are not pushed: ${error.message}`, isPassing: error.isPassing };
  }
}

/** Records work that is in no delivered commit. Only at the end: while the agent works, it may still commit them. */
async function reportLeftOut(
  { deps, session, input }: Delivery,
  { leftOut, leftOutCount }: Prepared,
): Promise<void> {
  if (leftOutCount === 0) return;
  const files = leftOut.map(({ about, ...file }) => ({
    ...file,
    path: deps.sanitizer.clean(file.path),
    about: about === undefined ? undefined : deps.sanitizer.clean(about),
  }));
  await appendEvents(deps.store.db, session.id, session.epoch, [
    { type: "git:left-out", step: input.step, data: { count: leftOutCount, files } },
  ]);
}
