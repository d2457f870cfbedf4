/** The files that are verified: those that are delivered. */
import { createHash } from "node:crypto";
import type { VerifySettings } from "../config/verify-settings.ts";
import type { VerifyInput } from "../contract/verify.ts";
import type { ActivityScope } from "../runtime/activity-scope.ts";
import type { AgentDeps } from "../runtime/deps.ts";
import type { Session } from "../store/sessions.ts";
import { parseBytes } from "../config/setting-values.ts";
import { accessOf } from "../session/fetch-repository.ts";
import { prepareDelivery } from "../session/prepare-delivery.ts";
import { updateMirror } from "../git/mirror.ts";
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
  const rows = await listPublications(deps.store.db, session.id);
  const pushes = rows.filter(({ kind, ref }) => kind === "push" && ref === repository.branch);
  const prepared = await prepareDelivery({ deps, scope, session, git, repository }, sandbox, pushes, {
    atEnd: true,
  });
  if ("trouble" in prepared) return prepared;
  const { tree, head, ref } = prepared;
  if (head === "") return { tree: "", commit: undefined, changed: [] };
  const changed = await changedProtected(verification, sandbox, { repository, head, ref });
  const hidden = prepared.leftOut.filter(({ reason }) => reason === "hidden").map(({ path }) => path);
  return "trouble" in changed ? changed : { tree, commit: head, changed: [...changed.paths, ...hidden] };
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
 * Protected paths that the commit changes, adds or removes against the session's base, by the worker's git: what the sandbox's git says
 * of its own files is the model's to set.
 */
async function changedProtected(
  { deps, scope, session, settings }: Verification,
  sandbox: Sandbox,
  { repository, head, ref }: { readonly repository: Repository; readonly head: string; readonly ref: string },
): Promise<{ readonly paths: readonly string[] } | { readonly trouble: string }> {
  const git = session.config.repository;
  if (settings.protect.length === 0 || git === undefined) return { paths: [] };
  const { url, baseCommit: base } = repository;
  const access = accessOf(deps);
  const mirror = await updateMirror(access, url, { wants: base, signal: scope.signal }).catch(
    (error: unknown) => {
      if (error instanceof GitFailed) return "/nonexistent";
      throw error;
    },
  );
  const relay = await openRelay(access, session.id, mirror, head);
  const received = await receive(relay, sandbox, {
    head,
    ref,
    base,
    signal: scope.signal,
    maxBytes: parseBytes(git.maxBundle),
  });
  if ("refused" in received) return { trouble: received.refused };
  return { paths: await changedPaths(relay, [base, received.commit], settings.protect) };
}

async function changedPaths(
  { access, folder }: Relay,
  [from, to]: readonly [string, string],
  patterns: readonly string[],
): Promise<readonly string[]> {
  const pathspecs = patterns.map((pattern) => `:(top,glob)${pattern}`);
  const args = ["diff", "--name-only", "-z", "--no-renames", "--no-ext-diff", from, to, "--", ...pathspecs];
  const result = await runGit(access, args, { cwd: folder });
  if (result.code !== 0) throw new GitFailed(args, result);
  return result.out.split("\0").filter((path) => path !== "");
}
