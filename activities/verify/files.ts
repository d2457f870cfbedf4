/** The files that are verified: those that are delivered. */
import { createHash } from "node:crypto";
import { isFresh, type VerifySettings } from "../config/verify-settings.ts";
import { isTestPath } from "../contract/attempts.ts";
import type { VerifyInput } from "../contract/verify.ts";
import type { ActivityScope } from "../runtime/activity-scope.ts";
import { accessOf, type AgentDeps } from "../runtime/deps.ts";
import type { Session } from "../store/sessions.ts";
import { parseBytes } from "../config/setting-values.ts";
import { prepareDelivery } from "../session/prepare-delivery.ts";
import { updateMirror } from "../git/mirror.ts";
import { pathspecs } from "../git/restored-commit.ts";
import { openRelay, receive, type Relay } from "../git/relay.ts";
import { GitFailed, runGit } from "../git/run-git.ts";
import type { Sandbox } from "../sandbox/sandbox.ts";
import { latestCheckpoint } from "../store/checkpoints.ts";
import { findRepository, listPublications, type Repository } from "../store/repositories.ts";
import { unpackManifest } from "../store/workspace-manifest.ts";
import { saveFiles } from "../workspace/save-files.ts";

/** One look at the work. */
export interface Verification {
  readonly deps: AgentDeps;
  readonly scope: ActivityScope;
  readonly session: Session;
  readonly settings: VerifySettings;
  readonly input: VerifyInput;
}

export interface Files {
  /** Equal for equal files. */
  readonly tree: string;
  readonly commit: string | undefined;
  /** Protected paths that differ from where the session began. */
  readonly changed: readonly string[];
  /** Lines added and removed outside of tests, if they are counted. */
  readonly changedLines?: number;
  /** Where the worker's git has the commit. */
  readonly source?: HeldCommit;
}

/** A commit that the worker's own git has, with what the session began with. */
export interface HeldCommit {
  readonly relay: Relay;
  /** What the relay borrows from; a path that is not there if the mirror is gone. */
  readonly mirror: string;
  readonly repository: Repository;
  readonly commit: string;
}

/** @returns `trouble` if the work cannot be delivered as it is */
export async function filesToVerify(
  verification: Verification,
  sandbox: Sandbox,
): Promise<Files | { readonly trouble: string }> {
  const { deps, scope, session } = verification;
  const git = session.config.repository;
  const repository = await findRepository(deps.store.db, session.id);
  if (git === undefined || repository === undefined) return savedFiles(verification, sandbox);
  if (verification.input.baseline === true) return untouched(verification, repository);
  const rows = await listPublications(deps.store.db, session.id);
  const pushes = rows.filter(({ kind, ref }) => kind === "push" && ref === repository.branch);
  const prepared = await prepareDelivery({ deps, scope, session, git, repository }, sandbox, pushes, {
    atEnd: true,
  });
  if ("trouble" in prepared) return prepared;
  const { tree, head, ref } = prepared;
  if (head === "") return untouched(verification, repository);
  const compared = await compareWithBase(verification, sandbox, { repository, head, ref });
  if ("trouble" in compared) return compared;
  const hidden = prepared.leftOut.filter(({ reason }) => reason === "hidden").map(({ path }) => path);
  return { ...compared, tree, commit: head, changed: [...compared.changed, ...hidden] };
}

/** What the session began with. */
async function untouched(verification: Verification, repository: Repository): Promise<Files> {
  const files = { tree: "", commit: undefined, changed: [] };
  if (!isFresh(verification.settings)) return files;
  const { baseCommit: commit } = repository;
  return { ...files, source: { ...(await relayFor(verification, repository, commit)), repository, commit } };
}

/** Of a session without a repository: what is saved of its workspace. */
async function savedFiles({ deps, session, input }: Verification, sandbox: Sandbox): Promise<Files> {
  await saveFiles(deps, sandbox, session, input.step);
  const checkpoint = await latestCheckpoint(deps.store.db, session.id);
  const hash = createHash("sha256");
  for (const { kind, path, mode, size, mtime, target } of checkpoint === undefined
    ? []
    : unpackManifest(checkpoint.manifest))
    if (kind !== "folder") hash.update(JSON.stringify([kind, path, mode, size, mtime, target]));
  return { tree: hash.digest("hex"), commit: undefined, changed: [] };
}

/**
 * What the commit changes, adds or removes against the session's base, by the worker's git: what the sandbox's git says of its own files
 * is the model's to set.
 */
async function compareWithBase(
  { deps, scope, session, settings }: Verification,
  sandbox: Sandbox,
  { repository, head, ref }: { readonly repository: Repository; readonly head: string; readonly ref: string },
): Promise<Pick<Files, "changed" | "changedLines" | "source"> | { readonly trouble: string }> {
  const git = session.config.repository;
  const { protect, countLines } = settings;
  if ((protect.length === 0 && !countLines && !isFresh(settings)) || git === undefined)
    return { changed: [] };
  const { baseCommit: base } = repository;
  const { relay, mirror } = await relayFor({ deps, scope, session }, repository, head);
  const received = await receive(relay, sandbox, {
    head,
    ref,
    base,
    signal: scope.signal,
    maxBytes: parseBytes(git.maxBundle),
  });
  if ("refused" in received) return { trouble: received.refused };
  const between = [base, received.commit] as const;
  const changed = protect.length === 0 ? [] : await changedPaths(relay, between, protect);
  const source = { relay, mirror, repository, commit: received.commit };
  return countLines
    ? { changed, source, changedLines: await countChanges(relay, between) }
    : { changed, source };
}

/** The session's own repository on the worker. A mirror that is gone leaves it without what it borrowed: then the sandbox gives all. */
async function relayFor(
  { deps, scope, session }: Pick<Verification, "deps" | "scope" | "session">,
  { url, baseCommit }: Repository,
  commit: string,
): Promise<Pick<HeldCommit, "relay" | "mirror">> {
  const access = accessOf(deps);
  const { signal } = scope;
  const mirror = await updateMirror(access, url, { wants: baseCommit, signal }).catch((error: unknown) => {
    if (error instanceof GitFailed) return "/nonexistent";
    throw error;
  });
  return { relay: await openRelay(access, session.id, mirror, commit), mirror };
}

function changedPaths(
  relay: Relay,
  [from, to]: readonly [string, string],
  patterns: readonly string[],
): Promise<readonly string[]> {
  const args = ["diff", "--name-only", "-z", "--no-renames", "--no-ext-diff", from, to];
  return diffed(relay, [...args, "--", ...pathspecs(patterns)]);
}

/** Lines added and removed outside of tests; a binary file has none. */
async function countChanges(relay: Relay, [from, to]: readonly [string, string]): Promise<number> {
  const options = ["--numstat", "-z", "--no-renames", "--no-ext-diff", "--no-textconv"];
  const counts = await diffed(relay, ["diff", ...options, from, to]);
  return counts.reduce((sum, entry) => {
    const [added = "", removed = "", ...path] = entry.split("\t");
    return isTestPath(path.join("\t")) ? sum : sum + (Number(added) || 0) + (Number(removed) || 0);
  }, 0);
}

async function diffed({ access, folder }: Relay, args: readonly string[]): Promise<string[]> {
  const result = await runGit(access, args, { cwd: folder });
  if (result.code !== 0) throw new GitFailed(args, result);
  return result.out.split("\0").filter((entry) => entry !== "");
}
