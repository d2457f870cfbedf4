/**
 * The set-up that is part of a base: run once where the base is made, in a sandbox like the session's but without its keys, so that
 * sessions begin with what it made. A session whose own files that name packages differ runs it again, for itself.
 */
import { randomUUID } from "node:crypto";
import { DEPENDENCY_FILES } from "../config/dependency-files.ts";
import { buildOf, type Setup } from "../config/sandbox-settings.ts";
import { sandboxServices } from "../config/service-settings.ts";
import type { WorkspaceDeps } from "../runtime/deps.ts";
import { setupSource } from "../sandbox/agent/sources.ts";
import { lastLine, program, readEnd, runOwn, type CommandSandbox } from "../sandbox/own-command.ts";
import { ofOwner, sandboxSpec, type SandboxSpec } from "../sandbox/sandbox-host.ts";
import type { BaseSetUp, Sandbox } from "../sandbox/sandbox.ts";
import type { Session } from "../store/sessions.ts";
import { REBUILT_FOLDERS } from "../store/workspace-manifest.ts";
import { shorten } from "../text/cut.ts";
import { allowListed } from "./egress.ts";
import { runCommands } from "./set-up-commands.ts";

/** A program that looks at files that differ: as long as for what is kept (kept-set-up.ts). */
const PROGRAM_TIMEOUT_MS = 300_000;
const MAX_REASON_CHARS = 300;

/** It is made without its set-up instead, and each session runs that. The message is for people. */
export class BaseSetUpFailed extends Error {}

type SetUpSession = Pick<Session, "config" | "owner">;

/** Whose a base is: one person's, or, if the operator's `warm` made it, everyone's who may fetch the repository. */
export type BaseScope = "person" | "team";

/** Undefined if nothing is to be kept of it, or what it does is not only files: a Dockerfile has an image, services have data. */
export function setUpInBase(
  { config: { sandbox } }: Pick<Session, "config">,
  scope: BaseScope,
): Setup | undefined {
  const { setup } = sandbox;
  const isFiles = buildOf(sandbox) === undefined && Object.keys(sandboxServices(sandbox)).length === 0;
  const isKnown = scope === "team" || sandbox.inherited?.setup !== undefined;
  return setup.commands.length > 0 && setup.keep && isKnown && isFiles ? setup : undefined;
}

/** All that a set-up could have read by rule, but the commit. */
export function setUpSettings(
  { config: { sandbox }, owner }: SetUpSession,
  scope: BaseScope,
  imageId: string | undefined,
) {
  const { network, domains, allow, setup, env, registries, inherited, cache } = sandbox;
  const { registries: inheritedRegistries, certificates, setup: person = "" } = inherited ?? {};
  const { commands } = setup;
  const settings = { imageId, network, domains, allow, commands, env, registries, cache };
  const whose = scope === "team" ? undefined : ofOwner(person, owner);
  return { ...settings, inheritedRegistries, certificates, person: whose };
}

/** The sandbox in which it runs: no key and no skill of the person enters what it makes, nor, for the team, a person's caches. */
export function setUpSpec(session: Session, scope: BaseScope): Omit<SandboxSpec, "sessionId"> {
  const { id, owner, config } = session;
  const inherited = config.sandbox.inherited && {
    ...config.sandbox.inherited,
    cache: scope === "team" ? undefined : config.sandbox.inherited.cache,
  };
  const sandbox = { ...config.sandbox, inherited, keys: [] };
  const { sessionId: _, base: __, ...spec } = sandboxSpec({ id, owner, config: { sandbox, plan: false } });
  return spec;
}

/**
 * Runs the commands where a base is made. @returns what they depend on
 * @throws BaseSetUpFailed; SandboxLost; the signal's reason
 */
export async function runBaseSetUp(
  deps: Pick<WorkspaceDeps, "store" | "sanitizer">,
  {
    session,
    setup,
    signal,
  }: { readonly session: Session; readonly setup: Setup; readonly signal: AbortSignal },
  sandbox: Sandbox,
): Promise<BaseSetUp> {
  await allowListed(deps.store.db, session, sandbox);
  const {
    status,
    command = "",
    how = "",
  } = await runCommands(deps, { session, sandbox, setup, step: 0 }, signal);
  if (status === "failed")
    throw new BaseSetUpFailed(
      shorten(`the project's set-up failed where it was made, at \`${command}\` (${how})`, MAX_REASON_CHARS),
    );
  const { outside } = await askProgram(sandbox, setup, { do: "outside" });
  return outside === false ? "packages" : "files";
}

/** Whether a session's sandbox has what its base's set-up made for just its files. */
export async function hasBaseSetUp(sandbox: Sandbox, setup: Setup): Promise<boolean> {
  if (sandbox.baseSetUp === undefined) return false;
  const { same } = await askProgram(sandbox, setup, { do: "same", all: sandbox.baseSetUp === "files" });
  return same === true;
}

/** To be called when the commands ran in a session's own sandbox on a base. */
export async function noteOwnSetUp(sandbox: Sandbox, setup: Setup): Promise<void> {
  await askProgram(sandbox, setup, { do: "ran" });
}

interface ProgramAnswer {
  readonly same?: boolean;
  readonly outside?: boolean;
  readonly unable?: string;
}

/** In doubt the set-up runs: a program that fails answers nothing. */
async function askProgram(sandbox: CommandSandbox, setup: Setup, request: object): Promise<ProgramAnswer> {
  const question = {
    commands: setup.commands,
    names: DEPENDENCY_FILES,
    rebuilt: REBUILT_FOLDERS,
    ...request,
  };
  const state = await runOwn(sandbox, {
    id: `base-set-up-${randomUUID()}`,
    ...program("LONGHAUL_SETUP", setupSource),
    stdin: Buffer.from(JSON.stringify(question)),
    timeoutMs: PROGRAM_TIMEOUT_MS,
  });
  const end = await readEnd(sandbox, state);
  return "out" in end ? (JSON.parse(end.out) as ProgramAnswer) : { unable: lastLine(end.message) };
}
