/**
 * A new sandbox beside the session's own, in which its work is verified: with the session's limits, network, services and keys, a clean
 * checkout, and nothing that the session's commands left. It is set up as any sandbox of the session, and removed afterwards.
 */
import { log } from "@temporalio/activity";
import { reasonOf } from "../contract/errors.ts";
import { whileFilled } from "../config/review-settings.ts";
import { setupOf } from "../config/sandbox-settings.ts";
import { sandboxServices } from "../config/service-settings.ts";
import { lastLine } from "../sandbox/own-command.ts";
import { type CommandState, SandboxLost, type Sandbox } from "../sandbox/sandbox.ts";
import { besideSession, sandboxSpec, type SandboxSpec } from "../sandbox/sandbox-host.ts";
import { findSetUp } from "../store/sandboxes.ts";
import { hasBaseSetUp } from "../workspace/base-set-up.ts";
import { allowListed } from "../workspace/egress.ts";
import { runCommands } from "../workspace/set-up-commands.ts";
import { startServices } from "../workspace/start-services.ts";
import type { HeldCommit, Verification } from "./files.ts";
import { fillFresh, mayHaveBase, snapshotCommand } from "./fresh-files.ts";

const BESIDE = { only: "beside" } as const;

/** What a fresh sandbox is for. */
export interface FreshLook {
  /** The session's own sandbox. */
  readonly own: Sandbox;
  /** The work; undefined for a session without a repository: its newest save. */
  readonly source: HeldCommit | undefined;
  /** What is checked out there. */
  readonly commit: string | undefined;
  /** Of the files: another look gets another sandbox. */
  readonly tree: string;
}

/** A sandbox that is filled and set up. */
export interface Fresh {
  readonly sandbox: Sandbox;
  /** Its tracked files, as a tree; empty without a repository. */
  readonly before: string;
}

/** Removes what an earlier attempt left; does nothing if there is nothing. Never rejects: it goes with the session at the latest. */
export async function removeFresh({ deps, session }: Verification): Promise<void> {
  await deps.sandboxHost.remove(session.id, BESIDE).catch((error: unknown) =>
    log.warn("the sandbox in which the work was verified could not be removed yet", {
      reason: reasonOf(error),
    }),
  );
}

/**
 * Runs `body` with a fresh sandbox, which a second attempt takes up with the commands that run in it. It is removed when `body` is
 * done, or a person ends the look; an attempt that is only tried again leaves it.
 * @param otherwise gets why there is none
 */
export async function inFresh<T>(
  verification: Verification,
  purpose: FreshLook,
  { body, otherwise }: { body: (fresh: Fresh) => Promise<T>; otherwise: (why: string) => Promise<T> },
): Promise<T> {
  try {
    const opened = await openFresh(verification, purpose);
    const result = typeof opened === "string" ? await otherwise(opened) : await body(opened);
    await removeFresh(verification);
    return result;
  } catch (error) {
    if (error instanceof SandboxLost || verification.scope.stoppedByPerson()) await removeFresh(verification);
    throw error;
  }
}

/** @returns why it cannot be had @throws SandboxLost, SandboxUnavailable (retryable), the signal's reason */
async function openFresh(verification: Verification, purpose: FreshLook): Promise<Fresh | string> {
  const { deps, scope, session } = verification;
  const { sandboxHost: host } = deps;
  if (session.config.sandbox.container !== undefined)
    return "the session works in another person's container, of which there is no fresh copy";
  const spec = freshSpec(verification, purpose);
  if ((await host.volume(session.id, BESIDE)) !== undefined) {
    const earlier = await host.open(spec, scope.signal);
    const state = await earlier.state(readyId(earlier, verification, purpose));
    if (state?.kind === "exited") return toFresh(earlier, state);
    // Of another look, or an attempt ended while it was made.
    await host.remove(session.id, BESIDE);
  }
  const fresh = await openNew(verification, purpose, spec);
  if (typeof fresh === "string") return fresh;
  await allowListed(deps.store.db, session, fresh);
  const trouble =
    (await fillFresh(verification, { own: purpose.own, fresh }, purpose)) ??
    (await setUpFresh(verification, fresh));
  if (trouble !== undefined) return trouble;
  const id = readyId(fresh, verification, purpose);
  const { commit } = purpose;
  const command = commit === undefined ? { argv: ["true"] } : snapshotCommand(commit);
  return toFresh(fresh, await fresh.run({ id, ...command }, { signal: scope.signal }));
}

/** The snapshot is read from the output of the command that says that the sandbox is ready, which is kept with it. */
async function toFresh(sandbox: Sandbox, state: CommandState): Promise<Fresh | string> {
  if (state.kind !== "exited") throw new SandboxLost("The sandbox was restarted while it was set up.");
  const stream = state.exitCode === 0 ? "out" : "err";
  const text = Buffer.from(await sandbox.read(state.id, stream, 0, MAX_BYTES)).toString("utf8");
  if (state.exitCode === 0) return { sandbox, before: text.trim() };
  return `Git cannot read the files that were checked out: ${lastLine(text)}`;
}

/** A tree's name has at most 64 characters, a message of Git a few lines. */
const MAX_BYTES = 4_000;

/** Package caches that the session's commands can write are left out: what they hold could decide what is installed. */
function freshSpec({ session }: Verification, { own, source }: FreshLook): SandboxSpec {
  const { repository, sandbox } = session.config;
  const base =
    repository !== undefined && source !== undefined && mayHaveBase(repository)
      ? own.identity.base
      : undefined;
  const config = { ...whileFilled(session.config), sandbox };
  const { cache: _, ...spec } = sandboxSpec({ ...session, config }, base);
  return { ...spec, ...besideSession(session.id) };
}

/** From the image that was built for the session, if one was. */
async function openNew(
  { deps, scope, session }: Verification,
  { own }: FreshLook,
  spec: SandboxSpec,
): Promise<Sandbox | string> {
  const { sandboxHost: host } = deps;
  const { signal } = scope;
  if (session.config.sandbox.build === undefined) return host.open(spec, signal);
  const { image } = await findSetUp(deps.store.db, session.id, own.identity.container);
  const built = image === undefined ? undefined : await host.setUps?.take(spec, image, { signal });
  return built ?? "the image that was built for the session is gone";
}

/** Starts the services and runs the set-up, as in a new sandbox of the session. @returns why it does not work */
async function setUpFresh(
  { deps, scope, session, input }: Verification,
  sandbox: Sandbox,
): Promise<string | undefined> {
  const { config } = session;
  const services = sandboxServices(config.sandbox);
  const { signal } = scope;
  const { services: host } = deps.sandboxHost;
  if (Object.keys(services).length > 0 && host !== undefined) {
    const { container, boot } = sandbox.identity;
    const home = { ...besideSession(session.id), container, boot, runtime: config.sandbox.runtime };
    // The session's events tell of its own services.
    const untold = { known: [], onStarted: async () => undefined, onHealthy: async () => undefined };
    const outcomes = await startServices({ host, home, sandbox, services, signal, ...untold });
    const broken = outcomes.find(({ failed }) => failed !== undefined);
    if (broken?.failed !== undefined) return `the service ${broken.name} does not work: ${broken.failed.why}`;
  }
  const setup = setupOf(config.sandbox);
  if (setup === undefined || (await hasBaseSetUp(sandbox, setup))) return undefined;
  const { status, command, how } = await runCommands(
    deps,
    { session, sandbox, setup, step: input.step },
    signal,
  );
  if (status === "done" || setup.optional) return undefined;
  return `the project's set-up failed at \`${command ?? ""}\` (${how ?? ""})`;
}

/** A command of this name has run in a sandbox that is filled and set up for this look; after a restart it is another sandbox. */
function readyId(fresh: Sandbox, { session, input }: Verification, { tree }: FreshLook): string {
  const { boot } = fresh.identity;
  return `fresh-${boot}-${session.epoch}-${input.step}-${input.round}-${tree.slice(0, 12)}`;
}
