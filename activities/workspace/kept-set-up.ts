/**
 * Caches the result of a project's set-up on the host, for later sessions of the same user on the same project: files outside
 * the workspace as an image, new files inside it as a pack in that image. The key is a hash of what the set-up depends on: of
 * the files that name packages if the set-up made only package folders, else of all files. Package files do not tell whose scripts
 * ran, so what is kept by them is used only where the commit that it was made from is part of the history.
 */
import { reasonOf } from "../contract/errors.ts";
import { createHash, randomUUID } from "node:crypto";
import { log } from "@temporalio/activity";
import type { RunConfig } from "../config/agent-config.ts";
import { DEPENDENCY_FILES } from "../config/dependency-files.ts";
import { repositoryAddress } from "../config/git-settings.ts";
import type { Setup } from "../config/sandbox-settings.ts";
import { sandboxServices } from "../config/service-settings.ts";
import { setupSource } from "../sandbox/agent/sources.ts";
import { readEnd, lastLine, program, runOwn } from "../sandbox/own-command.ts";
import type { CommandState, Sandbox } from "../sandbox/sandbox.ts";
import { REBUILT_FOLDERS } from "../store/workspace-manifest.ts";
import { findSandbox, recordSandbox } from "../store/sandboxes.ts";
import { setContainer, type Session } from "../store/sessions.ts";
import { withSandboxLock } from "../store/session-locks.ts";
import { allowListed } from "./egress.ts";
import { inCharge } from "./session-sandbox.ts";
import type { WorkspaceDeps } from "../runtime/deps.ts";
import { ofOwner, sandboxSpec } from "../sandbox/sandbox-host.ts";

/** Packing 2 GiB at disk speed. */
const PROGRAM_TIMEOUT_MS = 300_000;
/** Part of every key: raising it makes what older versions kept unusable. */
const VERSION = 3;

interface SetUpPlace {
  readonly session: Session;
  readonly sandbox: Sandbox;
  readonly setup: Setup;
  /** The image that was built for the sandbox, if its project has a Dockerfile. */
  readonly image: string | undefined;
}

/** Whose it is; undefined if nothing is to be cached: there is no set-up, its owner is unknown, or the user has turned it off. */
function keeperOf({ session, sandbox, setup, image }: SetUpPlace): string | undefined {
  const { inherited, container } = session.config.sandbox;
  // Another person's container is not recreated.
  if (container !== undefined) return undefined;
  // What is the same for many is in its base.
  if (sandbox.identity.base !== undefined && image === undefined) return undefined;
  // What its commands put into a service, such as a database's tables, would not be there.
  if (Object.keys(sandboxServices(session.config.sandbox)).length > 0) return undefined;
  if (!setup.keep || setup.commands.length === 0) return undefined;
  return inherited?.setup === undefined ? undefined : ofOwner(inherited.setup, session.owner);
}

/** Undefined if nothing is to be cached. */
export function keptSetUp(deps: WorkspaceDeps, where: SetUpPlace) {
  const { session, sandbox, setup, image } = where;
  const { setUps } = deps.sandboxHost;
  const owner = keeperOf(where);
  if (setUps === undefined || owner === undefined) return undefined;
  const on = image === undefined ? [] : [image];
  const { repository } = session.config;
  const depends = { commands: setup.commands, names: DEPENDENCY_FILES, rebuilt: REBUILT_FOLDERS };
  const ask = (target: Sandbox, what: string, more = {}) =>
    askProgram(target, { do: what, ...depends, ...more });
  /** Keys by what the set-up depends on: only the files that name packages, or all files. */
  const keys: { packages?: string; files?: string } = {};
  let commit: string | undefined;
  let unable: string | undefined;

  async function takeBy(entry: KeptPlace, signal: AbortSignal): Promise<Sandbox | undefined> {
    const candidate = await openKept(deps, session, entry, signal);
    if (candidate === undefined) return undefined;
    const { unpacked } = await ask(candidate, "unpack");
    return unpacked === true ? candidate : undefined;
  }

  return {
    /** Replaces the given sandbox by one with the kept result; undefined if no kept result fits. */
    async take(signal: AbortSignal): Promise<Sandbox | undefined> {
      const locks = await ask(sandbox, "locks");
      if (locks.hash !== undefined) {
        keys.packages = toSetUpKey(session.config, owner, ["packages", locks.hash, ...on]);
        ({ commit } = locks);
        const contains = async (keptCommit: string) =>
          (await ask(sandbox, "contains", { commit: keptCommit })).contains === true;
        const accepts = async (keptCommit: string) =>
          isOnForge(repository?.url) ||
          (keptCommit === "" || commit === undefined ? keptCommit === (commit ?? "") : contains(keptCommit));
        const reused = await takeBy({ key: keys.packages, accepts }, signal);
        if (reused !== undefined) return reused;
      }
      const answer = await ask(sandbox, "begin");
      unable = locks.unable ?? answer.unable;
      if (answer.hash === undefined) return undefined;
      keys.files = toSetUpKey(session.config, owner, ["files", answer.hash, ...on]);
      return takeBy({ key: keys.files }, signal);
    },
    /**
     * Call it after the set-up. What another branch than the default one made is only for the very same files.
     * @returns why it is not kept, if it is not
     */
    async keep(): Promise<string | undefined> {
      if (unable !== undefined) return unable;
      try {
        const packed = await ask(sandbox, "pack");
        const byPackages = packed.onlyRebuilt === true && repository?.ref === undefined;
        const key = (byPackages ? keys.packages : undefined) ?? keys.files;
        if (packed.unable === undefined && key !== undefined)
          await setUps.keep(sandboxSpec(session, sandbox.identity.base), key, commit);
        await ask(sandbox, "clear");
        return packed.unable;
      } catch (error) {
        const reason = reasonOf(error);
        log.warn("what a project's set-up made was not kept", { reason });
        return reason;
      }
    },
  };
}

/**
 * There only the default branch keeps by package files. On a disk any branch may be checked out under any name, so what is kept
 * must come from the branch's own history.
 */
function isOnForge(url: string | undefined): boolean {
  const address = repositoryAddress(url ?? "");
  return !("wrong" in address) && address.kind !== "file";
}

interface KeptPlace {
  readonly key: string;
  /** Whether what was kept with this commit may be used; it is empty without one. */
  readonly accepts?: (commit: string) => Promise<boolean>;
}

/** The answer of agent/setup.py. */
interface ProgramAnswer {
  readonly unable?: string;
  readonly hash?: string;
  readonly commit?: string;
  readonly contains?: boolean;
  readonly onlyRebuilt?: boolean;
  readonly unpacked?: boolean;
}

async function askProgram(sandbox: Sandbox, request: object): Promise<ProgramAnswer> {
  const end = await readEnd(
    sandbox,
    await runSetUpProgram(sandbox, ["LONGHAUL_SETUP", setupSource], request),
  );
  if ("out" in end) return JSON.parse(end.out) as ProgramAnswer;
  return { unable: `the program that keeps it ended early: ${lastLine(end.message)}` };
}

/** @returns its state once it has ended: its output must be read and discarded */
export function runSetUpProgram(
  sandbox: Sandbox,
  [variable, source]: readonly [variable: string, source: string],
  request: object,
  maxOutputBytes?: number,
): Promise<CommandState> {
  return runOwn(sandbox, {
    id: `setup-${randomUUID()}`,
    ...program(variable, source),
    stdin: Buffer.from(JSON.stringify(request)),
    timeoutMs: PROGRAM_TIMEOUT_MS,
    maxOutputBytes,
  });
}

/**
 * Recreates the session's sandbox from what is kept under `key`, holding the session's lock, under which sandboxes are
 * created and recorded. @returns undefined if nothing is kept, or what is kept is not accepted
 */
export async function openKept(
  deps: WorkspaceDeps,
  session: Session,
  entry: KeptPlace,
  signal: AbortSignal,
): Promise<Sandbox | undefined> {
  return withSandboxLock(deps.store, session.id, async (tx) => {
    await inCharge(tx, session);
    const base = (await findSandbox(tx, session.id))?.baseKey;
    const sandbox = await deps.sandboxHost.setUps?.take(sandboxSpec(session, base), entry.key, {
      signal,
      accepts: entry.accepts,
    });
    if (sandbox === undefined) return undefined;
    await allowListed(tx, session, sandbox);
    await setContainer(tx, session.id, sandbox.container);
    await recordSandbox(tx, session.id, { ...sandbox.identity, taskQueue: deps.taskQueues.sandbox });
    return sandbox;
  });
}

/** Exported for its test. */
export function toSetUpKey(
  { sandbox }: Pick<RunConfig, "sandbox">,
  owner: string,
  depends: readonly string[],
): string {
  const { image, network, setup, env, registries, inherited, cache } = sandbox;
  const commands = setup.commands;
  const settings = { image, network, commands, env, registries, inherited: inherited?.registries, cache };
  return createHash("sha256")
    .update(JSON.stringify([VERSION, owner, settings, ...depends]))
    .digest("hex")
    .slice(0, 32);
}
