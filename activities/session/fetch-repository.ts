/**
 * The session's first files from a repository: a clone on the worker, and the base that a checkout of it is, made once on each host; or,
 * where the host has no layers, a checkout in the sandbox. Saved as checkpoint 0.
 *
 * Idempotency key: the session's row in `repositories`, written last. Side effects: the mirror on the worker's disk, the
 * workspace, a checkpoint, rows and an event. Heartbeat: by timer. Retry class: remote, engine, database. Cancel: git is
 * ended; the next attempt begins with an empty workspace.
 */
import { inScope, type ActivityScope } from "../runtime/activity-scope.ts";
import { agentIdentity } from "../config/commit-settings.ts";
import { projectFiles, type ProjectFiles } from "../config/system-prompt.ts";
import { isDelivered, parseForge, type SessionGit, toBranchName } from "../config/git-settings.ts";
import type { FetchedRepository } from "../contract/delivery.ts";
import { fatal } from "../contract/failures.ts";
import { showHeads } from "../git/followed-branch.ts";
import type { GitAccess } from "../git/git-access.ts";
import { fetchForSession, layOut, takeOn, type Fetched } from "../git/lay-out.ts";
import { readReviewed, type Reviewed } from "../review/begin-review.ts";
import type { CommandSandbox } from "../sandbox/own-command.ts";
import { recoverGuidance } from "../store/guidance.ts";
import { isReadOnly } from "../config/review-settings.ts";
import { trySigning } from "../git/signing-key.ts";
import { projectFilesIn, pullRequestTemplate } from "../git/repository-files.ts";
import { beginBranch } from "../git/sandbox-git.ts";
import { cleanDeep } from "../text/clean.ts";
import { accessOf, type AgentDeps } from "../runtime/deps.ts";
import { enterSession } from "../runtime/enter-session.ts";
import type { Queryable } from "../store/db.ts";
import { latestCheckpoint } from "../store/checkpoints.ts";
import type { EventData, NewEvent } from "../store/event.ts";
import { appendEvents } from "../store/events.ts";
import type { Session } from "../store/sessions.ts";
import { findRepository, saveRepository } from "../store/repositories.ts";
import { markClosed, PARKED } from "../store/sandboxes.ts";
import { setPrompt } from "../store/stored-settings.ts";
import { takeSandboxTools } from "../step/catalogues.ts";
import { lockRun } from "../store/session-locks.ts";
import { saveLimits } from "../workspace/save-limits.ts";
import { unpackMissing } from "../store/workspace-manifest.ts";
import { whyCopy } from "../workspace/base.ts";
import { saveFiles } from "../workspace/save-files.ts";
import { withoutLost, type SessionSandboxes } from "../workspace/session-sandbox.ts";
import { type SessionBases, createSessionBases } from "./begin-on-base.ts";

export function createFetchRepository(deps: AgentDeps, sandboxes: SessionSandboxes) {
  const bases = createSessionBases(deps, sandboxes);
  return (input: { readonly step: number }): Promise<FetchedRepository> =>
    inScope(deps, (scope) => fetchRepository({ deps, sandboxes, bases, scope }, input.step));
}

interface Fetching {
  readonly deps: AgentDeps;
  readonly sandboxes: SessionSandboxes;
  readonly bases: SessionBases;
  readonly scope: ActivityScope;
}

async function fetchRepository(
  { deps, sandboxes, bases, scope }: Fetching,
  step: number,
): Promise<FetchedRepository> {
  const { db } = deps.store;
  const session = await enterSession(deps, scope, { step, phase: "model" });
  const { repository } = session.config;
  if (repository === undefined) throw fatal("BadConfiguration", "This session names no repository.");
  const existing = await findRepository(db, session.id);
  if (existing !== undefined && (await latestCheckpoint(db, session.id)) !== undefined)
    return { commit: existing.baseCommit, bytes: 0 };
  const access = accessOf(deps);
  const { signal } = scope;
  await requireSigning(access, repository);
  const fetched = await fetchForSession(access, repository, session.id, signal);
  const { mirror, start } = fetched;
  const reviewed = await reviewedIn(deps, session, fetched, signal);
  const branch = toBranchName(repository, session.id);
  const copies = await whyCopy(deps, session.config);
  const base =
    copies === undefined ? await bases.begin({ session, repository, access, fetched, signal }) : undefined;
  return withoutLost(sandboxes, session.id, async () => {
    const { sandbox } = await sandboxes.open(session, step, scope.signal);
    await takeSandboxTools(deps, scope, session, { step, sandbox });
    const { url } = repository;
    const author = agentIdentity(repository);
    const beganMs = performance.now();
    const isCopy = base === undefined || sandbox.identity.base !== base.key;
    let bytes = 0;
    if (isCopy) bytes = await layOut(access, sandbox, fetched, { repository, branch, signal });
    else if (base.behind > 0)
      bytes = await takeOn(access, sandbox, fetched, { older: base.commit, branch, author, signal });
    else await beginBranch(sandbox, { branch, author, commit: start.commit });
    await showBase(access, sandbox, { ...fetched, base: reviewed?.base, signal });
    const copyMs = Math.round(performance.now() - beganMs);
    await saveFiles(deps, sandbox, session, 0);
    if (isCopy) await refuseUnsaved(deps, session, url);
    // What a reviewed change says of the project is not the project's word yet.
    const project = await projectAt(deps, session, mirror, reviewed?.base?.commit ?? start.commit);
    await db.transaction(async (tx) => {
      if (!(await lockRun(tx, session.id, scope.runId))) return;
      await setPrompt(tx, session, project);
      // From here on the sandbox is opened as the session may use it.
      if (isReadOnly(session.config)) await markClosed(tx, session.id, PARKED);
      await saveRepository(tx, {
        sessionId: session.id,
        url,
        ref: repository.ref === undefined ? null : start.name,
        baseCommit: start.commit,
        branch,
      });
      await tellModel(tx, session, reviewed);
      const ref = start.name;
      await appendEvents(tx, session.id, session.epoch, [
        ...(isCopy ? noBase(deps, session, { ...(copies ?? NONE_MADE), ms: copyMs }) : []),
        { type: "git:fetched", step: 0, data: { url, ref, commit: start.commit, branch, bytes } },
      ]);
    });
    return { commit: start.commit, bytes };
  });
}

/** The project's own words for the prompt, as a commit has them. */
async function projectAt(
  deps: AgentDeps,
  { config }: Session,
  mirror: string,
  commit: string,
): Promise<ProjectFiles> {
  const access = accessOf(deps);
  const files = await projectFilesIn(access, mirror, commit, config);
  const project = {
    ...projectFiles(files, config),
    template: await templateAt(access, mirror, commit, config),
  };
  return cleanDeep(project, deps.sanitizer.clean) as ProjectFiles;
}

/** For a pull request's text, if there will be one. A server of another name is most likely a Gitea, which takes GitHub's place, too. */
async function templateAt(
  access: GitAccess,
  mirror: string,
  commit: string,
  { repository }: Session["config"],
) {
  if (repository === undefined || repository.pr === "none") return undefined;
  const kind = parseForge(repository.url, repository.forge)?.kind ?? "gitea";
  return pullRequestTemplate(access, mirror, commit, kind);
}

function noBase(
  { sandboxHost }: AgentDeps,
  { config }: Session,
  data: EventData["base:none"],
): readonly NewEvent[] {
  if (sandboxHost.bases === undefined || config.sandbox.container !== undefined) return [];
  return [{ type: "base:none", step: 0, data }];
}

/** The pull request of a session that reviews one. */
async function reviewedIn(
  deps: AgentDeps,
  session: Session,
  { mirror, start }: Fetched,
  signal: AbortSignal,
): Promise<Reviewed | undefined> {
  if (session.config.reviews === undefined) return undefined;
  return readReviewed(deps, session, { mirror, head: start.commit, signal });
}

/** With the first step. */
async function tellModel(tx: Queryable, { id, epoch }: Session, reviewed: Reviewed | undefined) {
  if (reviewed !== undefined) await recoverGuidance(tx, { sessionId: id, epoch, step: 0 }, reviewed.items);
}

/** Shows the branch that a reviewed pull request goes into, beside its head. */
async function showBase(
  access: GitAccess,
  sandbox: CommandSandbox,
  {
    mirror,
    start,
    base,
    signal,
  }: Fetched & { readonly base: Reviewed["base"]; readonly signal: AbortSignal },
): Promise<void> {
  if (base === undefined) return;
  const to = { branch: "", base: base.branch, known: start.commit, mayAdvance: false, signal };
  await showHeads(access, sandbox, { head: undefined, base: base.commit, mirror }, to);
}

/** Before any work is done: a key that does not sign would have it refused in the end. */
async function requireSigning(access: GitAccess, git: SessionGit): Promise<void> {
  const { sign } = git;
  if (sign === "none" || !isDelivered(git)) return;
  const tried = await trySigning(access.signing, sign);
  if ("trouble" in tried) throw fatal("KeyMissing", `${tried.trouble.message}. ${tried.trouble.fix}`);
}

/** The event of a session that waits for no base. */
const NONE_MADE = {
  why: "no base is on this host, and none was to be made for it (--no-warm, sandbox.layers: made)",
  chosen: true,
} as const;

const ON_BASE = "Let the session begin on a base (sandbox.layers: auto, without --no-warm), or fetch";
/** What helps, by the setting. */
const FEWER = { auto: "Fetch", made: ON_BASE, copy: ON_BASE } as const;

/** Without its history in the first save, commits could not be brought back. @throws RepositoryUnavailable (fatal) */
async function refuseUnsaved(
  { store }: AgentDeps,
  { id, config: { sandbox } }: Session,
  url: string,
): Promise<void> {
  const saved = await latestCheckpoint(store.db, id);
  if (saved === undefined || unpackMissing(saved.manifest).reasons.get(".git") === undefined) return;
  throw fatal(
    "RepositoryUnavailable",
    `The history of ${url} is larger than a save of the workspace (${saveLimits(store.db).bytes / 2 ** 20} MiB), so its commits could not be brought back if the sandbox is lost. ${FEWER[sandbox.layers]} less of it: git.depth: 1 in longhaul.yaml.`,
  );
}
