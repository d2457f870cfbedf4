/**
 * Sets a project up in each new sandbox of its session: the commands of `sandbox.setup`, once per container. They run under
 * the sandbox's supervisor by fixed ids, so that the attempt after a lost one finds what was started.
 *
 * A sandbox can also be recreated from an image that is built from its workspace's Dockerfile. Like a set-up's result, the image
 * is cached on the host under a hash of what it depends on; later sandboxes of the session use it as long as it is there.
 */
import { buildOf, setupOf, type Setup, buildCommand, type ImageBuild } from "../config/sandbox-settings.ts";
import { fatal, superseded, retryable } from "../contract/failures.ts";
import type { AgentDeps, WorkspaceDeps } from "../runtime/deps.ts";
import { type Sandbox, SandboxLost, type CommandState } from "../sandbox/sandbox.ts";
import { shareWork, type SharedWork } from "../sandbox/shared-work.ts";
import type { EventData } from "../store/event.ts";
import { appendEvents } from "../store/events.ts";
import { addNotice, findSetUp, type KnownSetUp } from "../store/sandboxes.ts";
import type { Session } from "../store/sessions.ts";
import { lockRun } from "../store/session-locks.ts";
import { cutTail, shorten } from "../text/cut.ts";
import { watchEgress } from "./egress.ts";
import { hasBaseSetUp, noteOwnSetUp } from "./base-set-up.ts";
import { keptSetUp, toSetUpKey, openKept, runSetUpProgram } from "./kept-set-up.ts";
import { runCommands } from "./set-up-commands.ts";
import { failureText, MAX_COMMAND_CHARS, MAX_OUTPUT_CHARS, readyNotice } from "./set-up-words.ts";
import type { SessionSandboxes } from "./session-sandbox.ts";
import { imageRefusal } from "../config/operator-policy.ts";
import { contextSource } from "../sandbox/agent/sources.ts";
import {
  type BuildOrder,
  type BuildResult,
  type KeptSetUps,
  ofOwner,
  sandboxSpec,
} from "../sandbox/sandbox-host.ts";
import { readEnd, lastLine, wholeOutput } from "../sandbox/own-command.ts";

type SetUpDeps = WorkspaceDeps & Pick<AgentDeps, "policy">;

export type SetUps = ReturnType<typeof createSetUps>;

/** @param beforeCommands called with the sandbox in which a set-up's commands are to run */
export function createSetUps(deps: SetUpDeps, beforeCommands: BeforeCommands = async () => undefined) {
  /** By session: its newest container that is set up or being set up. */
  const bySession = new Map<string, { readonly container: string; readonly work: SharedWork<Sandbox> }>();
  return {
    /**
     * Returns the sandbox when it is set up, or the one that replaces it with the kept result of an earlier set-up. Idempotent;
     * several callers wait for one set-up.
     * @throws SetupFailed (fatal) if a command failed and the set-up is not optional
     */
    async ensure(session: Session, sandbox: Sandbox, step: number, signal?: AbortSignal): Promise<Sandbox> {
      const setup = setupOf(session.config.sandbox);
      if (setup === undefined) return sandbox;
      const { container } = sandbox.identity;
      const before = bySession.get(session.id);
      if (before?.container === container && before.work.canJoin) return before.work.join(signal);
      const work = shareWork((stop) => setUp(deps, { session, sandbox, setup, step, beforeCommands }, stop));
      const entry = { container, work };
      bySession.set(session.id, entry);
      try {
        const ready = await work.join(signal);
        if (bySession.get(session.id) === entry)
          bySession.set(session.id, { container: ready.identity.container, work });
        return ready;
      } catch (error) {
        if (bySession.get(session.id) === entry) bySession.delete(session.id);
        throw error;
      }
    },
  };
}

/** The same sandboxes, each set up before a caller gets it. */
export function withSetUp(sandboxes: SessionSandboxes, setUps: SetUps): SessionSandboxes {
  return {
    ...sandboxes,
    async open(session, step, signal) {
      const opened = await sandboxes.open(session, step, signal);
      return { ...opened, sandbox: await setUps.ensure(session, opened.sandbox, step, signal) };
    },
  };
}

type BeforeCommands = (
  session: Session,
  sandbox: Sandbox,
  step: number,
  signal: AbortSignal,
) => Promise<void>;

interface SetUpJob {
  readonly beforeCommands: BeforeCommands;
  readonly session: Session;
  readonly sandbox: Sandbox;
  readonly setup: Setup;
  readonly step: number;
}

type Ended = EventData["setup:ended"];

async function setUp(deps: SetUpDeps, job: SetUpJob, signal: AbortSignal): Promise<Sandbox> {
  const { session, sandbox, setup, step } = job;
  const { db } = deps.store;
  const { container } = sandbox.identity;
  const before = await findSetUp(db, session.id, container);
  if (before.ended !== undefined) {
    unlessFailed(before.ended, setup);
    return sandbox;
  }
  const build = buildOf(session.config.sandbox);
  const commands = [...(build === undefined ? [] : [buildCommand(build)]), ...setup.commands].map((command) =>
    shorten(deps.sanitizer.clean(command), MAX_COMMAND_CHARS),
  );
  if (!before.started) {
    await appendEvents(db, session.id, session.epoch, [
      { type: "setup:started", step, data: { container, commands } },
    ]);
  }
  const { result, ready } = await takeOrRun(deps, job, before, signal);
  await db.transaction(async (tx) => {
    if (!(await lockRun(tx, session.id, session.runId ?? "")))
      throw superseded("the set-up of its sandbox was left as it is");
    // An earlier attempt that was thought dead may have finished too.
    if ((await findSetUp(tx, session.id, result.container)).ended !== undefined) return;
    await appendEvents(tx, session.id, session.epoch, [{ type: "setup:ended", step, data: result }]);
    if (result.status === "done" || setup.optional)
      await addNotice(tx, session.id, readyNotice(result, commands, before.again));
  });
  unlessFailed(result, setup);
  return ready;
}

async function takeOrRun(
  deps: SetUpDeps,
  job: SetUpJob,
  { again, built, image: before }: KnownSetUp,
  signal: AbortSignal,
): Promise<{ readonly result: Ended; readonly ready: Sandbox }> {
  const { session, setup, step } = job;
  const build = buildOf(session.config.sandbox);
  const startMs = performance.now();
  const durationMs = () => Math.round(performance.now() - startMs);
  let { sandbox } = job;
  let image = build === undefined ? undefined : before;
  if (build !== undefined && !built) {
    const opened = await openBuilt(deps, build, { ...job, before }, signal);
    if ("failed" in opened) return { result: { ...opened.failed, durationMs: durationMs() }, ready: sandbox };
    ({ ready: sandbox, image } = opened);
  }
  const current = { ...job, sandbox };
  const cache = keptSetUp(deps, { session, sandbox, setup, image });
  const reused = (await hasBaseSetUp(sandbox, setup)) ? sandbox : await cache?.take(signal);
  if (reused !== undefined) {
    const { container } = reused.identity;
    const result = {
      container,
      status: "done",
      output: "",
      kept: "taken",
      durationMs: durationMs(),
    } as const;
    return { result, ready: reused };
  }
  await job.beforeCommands(session, sandbox, step, signal);
  const ran = await runCommands(deps, current, signal);
  const outcome = { ...ran, durationMs: durationMs() };
  if (sandbox.baseSetUp !== undefined && ran.status === "done") await noteOwnSetUp(sandbox, setup);
  // After the first step the agent may have changed files that the commands use.
  if (outcome.status === "failed" || cache === undefined || again || step > 1)
    return { result: outcome, ready: sandbox };
  const notKept = await cache.keep();
  return {
    result: {
      ...outcome,
      ...(notKept === undefined ? { kept: "made" } : { notKept: shorten(notKept, 300) }),
    },
    ready: sandbox,
  };
}

/** @throws SetupFailed (fatal) */
function unlessFailed(result: Ended, { optional }: Setup): void {
  if (result.status === "failed" && !optional) throw fatal("SetupFailed", failureText(result));
}

/** Limit of a context's tar, which is stored in the sandbox while it is read. Chosen: the same as for a checkpoint. */
const MAX_CONTEXT_BYTES = 256 * 1024 * 1024;

type Failed = Omit<EventData["setup:ended"], "durationMs">;

interface BuildRequest {
  readonly session: Session;
  readonly sandbox: Sandbox;
  readonly setup: Setup;
  readonly step: number;
  /** The image that an earlier sandbox of the session was made from. */
  readonly before: string | undefined;
}

/** @returns the sandbox that is made from the image, or how the build failed @throws SandboxUnavailable, SandboxRefused (fatal) */
async function openBuilt(
  deps: SetUpDeps,
  build: ImageBuild,
  request: BuildRequest,
  signal: AbortSignal,
): Promise<{ readonly ready: Sandbox; readonly image: string } | { readonly failed: Failed }> {
  const { session, sandbox, step, before } = request;
  const { setUps } = deps.sandboxHost;
  if (setUps === undefined) throw new Error("This sandbox host builds no images.");
  const startMs = performance.now();
  let output = "";
  const failed = (how: string) => ({
    failed: {
      container: sandbox.identity.container,
      status: "failed" as const,
      command: shorten(deps.sanitizer.clean(buildCommand(build)), MAX_COMMAND_CHARS),
      how: shorten(deps.sanitizer.clean(how), MAX_COMMAND_CHARS * 2),
      output,
    },
  });
  const built = async (key: string, origin: "taken" | "made", ready: Sandbox) => {
    const { container } = ready.identity;
    const durationMs = Math.round(performance.now() - startMs);
    await appendEvents(deps.store.db, session.id, session.epoch, [
      { type: "setup:built", step, data: { container, image: key, kept: origin, durationMs, output } },
    ]);
    return { ready, image: key };
  };

  const earlier = before === undefined ? undefined : await openKept(deps, session, { key: before }, signal);
  if (before !== undefined && earlier !== undefined) return built(before, "taken", earlier);
  const facts = await contextFacts(sandbox, build);
  if ("trouble" in facts) return failed(facts.trouble);
  const key = imageKey(session, build, facts.hash);
  const reused = await openKept(deps, session, { key }, signal);
  if (reused !== undefined) return built(key, "taken", reused);

  const egress = watchEgress(deps, session, step);
  try {
    await egress.begin(sandbox);
    const result = await buildFrom(
      setUps,
      request,
      { ...facts, build, key, layers: layersKey(session, sandbox), refuseImage: imageRule(deps) },
      signal,
    );
    output = cutTail(deps.sanitizer.clean(result.output).trimEnd(), MAX_OUTPUT_CHARS);
    const refused = await egress.end();
    if (result.failed !== undefined)
      return failed([result.failed, ...(refused === undefined ? [] : [refused])].join("; "));
  } finally {
    egress.stop();
  }
  const ready = await openKept(deps, session, { key }, signal);
  if (ready === undefined)
    throw retryable("SandboxUnavailable", "The image that was built is gone; it is built again.");
  return built(key, "made", ready);
}

/** Includes the owner: a Dockerfile may fetch private files. A session without an owner has its own image. */
function keyFor({ id, config, owner }: Session, depends: readonly string[]): string {
  const inherited = config.sandbox.inherited?.setup;
  return toSetUpKey(config, inherited === undefined ? `session ${id}` : ofOwner(inherited, owner), depends);
}

const imageKey = (session: Session, build: ImageBuild, hash: string): string =>
  keyFor(session, ["image", JSON.stringify(build), hash]);

/** Without an owner, the layers are the sandbox's, whose id no other session knows. It outlives a worker. */
const layersKey = (session: Session, { identity: { container } }: Sandbox): string =>
  keyFor(session, ["layers", ...(session.config.sandbox.inherited?.setup === undefined ? [container] : [])]);

const imageRule =
  ({ policy }: Pick<AgentDeps, "policy">) =>
  (image: string): string | undefined => {
    const refusal = policy && imageRefusal(policy, image, "its image");
    return refusal && `the operator's policy refuses it (${refusal.rule}): ${refusal.why}`;
  };

interface ContextFacts {
  readonly hash: string;
  /** The Dockerfile's name in the context. */
  readonly dockerfile: string;
}

async function contextFacts(
  sandbox: Sandbox,
  build: ImageBuild,
): Promise<ContextFacts | { readonly trouble: string }> {
  const end = await readEnd(sandbox, await runContext(sandbox, "hash", build));
  return "out" in end ? (JSON.parse(end.out) as ContextFacts) : { trouble: troubleIn(end.message) };
}

const troubleIn = (output: string): string => lastLine(output) || "the context could not be packed";

async function buildFrom(
  setUps: KeptSetUps,
  { session, sandbox, setup }: BuildRequest,
  {
    build,
    key,
    dockerfile,
    ...rules
  }: ContextFacts &
    Pick<BuildOrder, "refuseImage" | "layers"> & { readonly build: ImageBuild; readonly key: string },
  signal: AbortSignal,
): Promise<BuildResult> {
  const state = await runContext(sandbox, "tar", build);
  try {
    if (state.kind !== "exited" || state.exitCode !== 0) {
      const end = await readEnd(sandbox, state);
      return { output: "", failed: troubleIn("message" in end ? end.message : "") };
    }
    if (state.outBytes > MAX_CONTEXT_BYTES)
      return {
        output: "",
        failed: `the context has more than ${MAX_CONTEXT_BYTES / 2 ** 20} MiB; leave some out by .dockerignore`,
      };
    const { args, target } = build;
    const context = wholeOutput(sandbox, state);
    const request = { context, dockerfile, args, target, timeoutMs: setup.timeout, ...rules };
    return await setUps.build(sandboxSpec(session, sandbox.identity.base), key, request, signal);
  } finally {
    await sandbox.discard(state.id);
  }
}

/** @throws SandboxLost */
async function runContext(sandbox: Sandbox, what: "hash" | "tar", build: ImageBuild): Promise<CommandState> {
  const request = { do: what, dockerfile: build.dockerfile, context: build.context };
  const source = ["LONGHAUL_CONTEXT", contextSource] as const;
  const state = await runSetUpProgram(sandbox, source, request, MAX_CONTEXT_BYTES);
  if (state.kind === "lost") throw new SandboxLost("The sandbox was restarted during its set-up.");
  return state;
}
