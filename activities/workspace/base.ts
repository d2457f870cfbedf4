/**
 * The base of a session's workspace: its repository's checkout at one commit, made once on each host for all sessions of a person that
 * begin there. The session's saves list only what differs from it.
 */
import { createHash } from "node:crypto";
import { agentIdentity } from "../config/commit-settings.ts";
import type { SessionGit } from "../config/git-settings.ts";
import type { Setup } from "../config/sandbox-settings.ts";
import { fatal } from "../contract/failures.ts";
import type { GitAccess } from "../git/git-access.ts";
import { type Fetched, fetchForSession, layOut } from "../git/lay-out.ts";
import { sandboxSpec, type SandboxSpec } from "../sandbox/sandbox-host.ts";
import type { WorkspaceDeps } from "../runtime/deps.ts";
import { baseChain, findBase, saveBase, type StoredBase } from "../store/bases.ts";
import type { Checkpoint } from "../store/checkpoints.ts";
import type { Database, Queryable } from "../store/db.ts";
import { keepAwake, lockSandbox } from "../store/session-locks.ts";
import type { Session } from "../store/sessions.ts";
import { holdPack } from "../store/stored-objects.ts";
import { packWorkspace } from "../store/workspace-pack.ts";
import { REBUILT_FOLDERS } from "../store/workspace-manifest.ts";
import {
  BaseSetUpFailed,
  type BaseScope,
  runBaseSetUp,
  setUpInBase,
  setUpSettings,
  setUpSpec,
} from "./base-set-up.ts";
import { countWorkspace, listWorkspace, packBase, restoreWorkspace } from "./workspace.ts";
import { saveLimits } from "./save-limits.ts";
import type { CommandSandbox } from "../sandbox/own-command.ts";
import type { BaseSetUp, Sandbox } from "../sandbox/sandbox.ts";

/** Part of every key: to be raised if what a base has is made differently. */
const VERSION = 2;

/** Why a session's workspace has no base; undefined if it can have one on this host. */
export async function whyNoBase(
  { sandboxHost: { bases } }: Pick<WorkspaceDeps, "sandboxHost">,
  { sandbox }: Session["config"],
): Promise<string | undefined> {
  if (sandbox.container !== undefined) return "it is another person's container";
  if (bases === undefined) return "this host has no layers";
  return bases.unable(sandbox.image);
}

/** Why a new session's files are a copy, whatever bases there are: by its settings, or as `whyNoBase`. */
export async function whyCopy(
  deps: Pick<WorkspaceDeps, "sandboxHost">,
  config: Session["config"],
): Promise<{ readonly why: string; readonly chosen?: true } | undefined> {
  if (config.sandbox.layers === "copy") return { why: "sandbox.layers is copy", chosen: true };
  const why = await whyNoBase(deps, config);
  return why === undefined ? undefined : { why };
}

/** A base, whose it is, and the set-up that is part of it. */
export interface WantedBase extends StoredBase {
  readonly scope: BaseScope;
  readonly setup: Setup | undefined;
}

/**
 * Its keys are hashes of all that the checkout depends on, and of whose it is: what one person may read, another may not. The team's
 * are for those who have just fetched the repository by their own rights.
 * @param settings of the set-up that is part of it
 */
export function toBase(
  session: Pick<Session, "config" | "owner">,
  repository: SessionGit,
  { start }: Pick<Fetched, "start">,
  { scope, settings }: { readonly scope: BaseScope; readonly settings: SetUpSettings | undefined },
): WantedBase {
  const { commit, refs, defaultBranch } = start;
  const family = familyOf(session, repository, { scope, settings });
  const setup = settings === undefined ? undefined : setUpInBase(session, scope);
  const key = hashed(["base", family, commit, refs, defaultBranch]);
  return { key, family, url: repository.url, commit, scope, setup };
}

function familyOf(
  { config: { sandbox }, owner }: Pick<Session, "config" | "owner">,
  { url, depth, submodules, lfs, ...git }: SessionGit,
  { scope, settings }: { readonly scope: BaseScope; readonly settings: SetUpSettings | undefined },
): string {
  // Each session sets its own author.
  const of = scope === "team" ? { team: true } : { owner: owner ?? "", author: agentIdentity(git) };
  return hashed([
    "family",
    VERSION,
    of,
    { url, depth, submodules, lfs, image: sandbox.image },
    settings ?? "",
  ]);
}

/** What the set-up of a session's bases depends on; undefined if none is part of them. @throws SandboxUnavailable (retryable) */
export async function findSetUpSettings(
  { sandboxHost: { bases } }: Pick<WorkspaceDeps, "sandboxHost">,
  session: Pick<Session, "config" | "owner">,
  scope: BaseScope,
): Promise<SetUpSettings | undefined> {
  if (setUpInBase(session, scope) === undefined) return undefined;
  return setUpSettings(session, scope, await bases?.imageId(session.config.sandbox.image));
}

type SetUpSettings = ReturnType<typeof setUpSettings>;

const hashed = (depends: readonly unknown[]): string =>
  createHash("sha256").update(JSON.stringify(depends)).digest("hex").slice(0, KEY_CHARS);

/** Of 64: as in names of what is kept for a person (sandbox-host.ts), and twice as many, since one holds a whole repository. */
const KEY_CHARS = 32;

interface BaseJob {
  readonly session: Session;
  readonly base: WantedBase;
  readonly signal: AbortSignal;
}

export interface MadeBase {
  readonly files: number;
  readonly bytes: number;
  /** How long its set-up took, in ms; absent without one. */
  readonly setUpMs?: number;
}

/**
 * Makes the base of a fetched repository on this host, unless it is there. One is made at a time, over all workers of the host.
 * @returns what it has, if this call made it
 * @throws what `layOut` throws; BaseSetUpFailed; SandboxUnavailable (retryable), SandboxRefused (fatal)
 */
export async function makeFetchedBase(
  tx: Queryable,
  deps: WorkspaceDeps,
  job: BaseJob,
  from: { readonly access: GitAccess; readonly repository: SessionGit; readonly fetched: Fetched },
): Promise<MadeBase | undefined> {
  const { access, repository, fetched } = from;
  let made: MadeBase | undefined;
  const { base, signal } = job;
  const { scope: _, setup, ...stored } = base;
  await makeOnHost(tx, deps, job, async (sandbox) => {
    await layOut(access, sandbox, fetched, { repository, branch: undefined, signal });
    const beganMs = performance.now();
    const setUp = setup && (await runBaseSetUp(deps, { ...job, setup }, sandbox));
    const setUpMs = setup && Math.round(performance.now() - beganMs);
    made = {
      ...(await storeBase({ tx, db: deps.store.db }, stored, sandbox, setup)),
      ...(setUpMs === undefined ? {} : { setUpMs }),
    };
    return setUp;
  });
  return made;
}

/**
 * The base on which a session's sandbox is opened: that of the sandbox that this host has, else that of its newest save, which is made
 * again if this host does not have it.
 * @param before what the sandbox stands on that has the session's files here; undefined if there is none
 * @returns undefined if its workspace has no base, or cannot have one here
 * @throws WorkspaceLost (fatal) if the base can neither be made here nor its files be read from the store
 */
export async function openBase(
  tx: Queryable,
  deps: WorkspaceDeps,
  session: Session,
  at: {
    readonly before: { readonly baseKey: string | null } | undefined;
    readonly checkpoint: Checkpoint | undefined;
    readonly signal: AbortSignal;
  },
): Promise<string | undefined> {
  if (at.before !== undefined) return at.before.baseKey ?? undefined;
  const key = at.checkpoint?.baseKey ?? undefined;
  const base = key === undefined ? undefined : await findBase(tx, key);
  if (base === undefined) return undefined;
  const why = await whyNoBase(deps, session.config);
  if (why !== undefined && !base.isWhole) throw notHere(base, why);
  if (why !== undefined) return undefined;
  const { isWhole, ...stored } = base;
  const { scope, setup } = await knownScope(deps, session, stored);
  await remake(tx, deps, { session, base: { ...stored, scope, setup }, signal: at.signal }, isWhole);
  return base.key;
}

/** The set-up that is part of a base, if this session's settings ask for it; of another's, or an older one, nothing is known. */
async function knownScope(
  deps: WorkspaceDeps,
  session: Session,
  base: StoredBase,
): Promise<Pick<WantedBase, "scope" | "setup">> {
  const { repository } = session.config;
  for (const scope of ["person", "team"] as const) {
    const settings = await findSetUpSettings(deps, session, scope);
    if (repository !== undefined && familyOf(session, repository, { scope, settings }) === base.family)
      return { scope, setup: settings && setUpInBase(session, scope) };
  }
  return { scope: "person", setup: undefined };
}

/** Makes a base that the store knows: its files are those that the sessions on it had. */
async function remake(tx: Queryable, deps: WorkspaceDeps, job: BaseJob, isWhole: boolean): Promise<void> {
  const { base } = job;
  const { setup } = base;
  const restore = async (sandbox: CommandSandbox) => restoreWorkspace(sandbox, await baseChain(tx, base.key));
  try {
    await makeOnHost(tx, deps, job, async (sandbox) => {
      if (isWhole) await restore(sandbox);
      else await fetchAgain(deps, job, sandbox);
      const setUp = setup && (await runBaseSetUp(deps, { ...job, setup }, sandbox));
      // What it made in rebuilt folders stays.
      if (setUp !== undefined && isWhole) await restore(sandbox);
      return setUp;
    });
  } catch (error) {
    if (!(error instanceof BaseSetUpFailed)) throw error;
    // Then the session runs it, and tells why it fails.
    await remake(tx, deps, { ...job, base: { ...base, setup: undefined } }, isWhole);
  }
}

async function makeOnHost(
  tx: Queryable,
  { sandboxHost: host }: WorkspaceDeps,
  { session, base: { key, scope, setup }, signal }: BaseJob,
  fill: (sandbox: Sandbox) => Promise<BaseSetUp | undefined>,
): Promise<void> {
  const { bases } = host;
  if (bases === undefined || ((await bases.isMade(key)) && (await findBase(tx, key)) !== undefined)) return;
  await lockSandbox(tx, baseLock(host, key));
  if ((await bases.isMade(key)) && (await findBase(tx, key)) !== undefined) return;
  const spec = setup === undefined ? makerSpec(session) : setUpSpec(session, scope);
  const counted = async (sandbox: Sandbox) => ({
    setUp: await fill(sandbox),
    bytes: await countWorkspace(sandbox),
  });
  await keepAwake(tx, () => bases.make(key, spec, counted, signal));
}

/** The name under which a host's base is locked while it is made or removed. */
export const baseLock = ({ name }: Pick<WorkspaceDeps["sandboxHost"], "name">, key: string): string =>
  `base ${name} ${key}`;

/** The sandbox in which a base is made: no settings of a person enter it, and it reaches nothing. */
function makerSpec(session: Session): Omit<SandboxSpec, "sessionId"> {
  const { image, memoryBytes, cpus, pids, runtime, disk, guard } = sandboxSpec(session);
  return { image, memoryBytes, cpus, pids, runtime, disk, guard, network: "none" };
}

/** Names of files without which a difference to the base cannot be read: what Git leaves out, and how it stores files. */
const NEEDED: readonly string[] = [".gitignore", ".gitattributes"];

/** Keeps the list of its files for all saves, and the files too if they fit into a save. */
async function storeBase(
  { tx, db }: { readonly tx: Queryable; readonly db: Database },
  base: StoredBase,
  sandbox: CommandSandbox,
  setup: Setup | undefined,
): Promise<MadeBase> {
  // What a set-up made there is made again where it is needed.
  const rebuilt = setup === undefined ? [] : REBUILT_FOLDERS;
  const { manifest, files, bytes } = await listWorkspace(sandbox, rebuilt);
  const isWhole = bytes <= saveLimits(tx).bytes;
  const pack = await packBase(sandbox, isWhole ? undefined : NEEDED, rebuilt, async ({ saved }) =>
    // The object's row outlives a transaction that fails, so that the object is not forgotten.
    saved === undefined ? (await packWorkspace([])).pack : holdPack(db, saved.pack),
  );
  await saveBase(tx, { ...base, manifest, pack, isWhole });
  return { files, bytes };
}

/** @throws WorkspaceLost (fatal) if the remote has the commit no more; RepositoryUnavailable (retryable) if it is away */
async function fetchAgain(
  { git: access }: WorkspaceDeps,
  { session, base, signal }: Pick<BaseJob, "session" | "base" | "signal">,
  sandbox: CommandSandbox,
): Promise<void> {
  const { repository } = session.config;
  if (access === undefined || repository === undefined) throw notHere(base, "this worker has no git");
  const start = { ...repository, ref: base.commit, push: "never", pr: "none" } as const;
  const fetched = await fetchForSession(access, start, session.id, signal).catch((error: unknown) => {
    throw namesCommit(error, base) ? noCommit(base, error) : error;
  });
  await layOut(access, sandbox, fetched, { repository, branch: undefined, signal });
}

/** The remote answered, and does not have it: what else is wrong is told in its own words. */
const namesCommit = (error: unknown, { commit }: StoredBase): boolean =>
  error instanceof Error && error.message.includes(`has no branch or tag ${commit}`);

const noCommit = ({ commit }: StoredBase, cause: unknown) =>
  fatal(
    "WorkspaceLost",
    `Commit ${commit} is at no remote and in no save any more: the session's files cannot be restored. The conversation and what the session changed are kept.`,
    cause,
  );

const notHere = ({ commit, url }: StoredBase, why: string) =>
  fatal(
    "WorkspaceLost",
    `The session's files stand on commit ${commit.slice(0, 12)} of ${url}, which is too large for a save, and this host cannot lay it below them: ${why}. Everything is kept; go on where it can.`,
  );
