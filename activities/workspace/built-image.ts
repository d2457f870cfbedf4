/**
 * Recreates a session's sandbox from an image that is built from its workspace's Dockerfile. Like a set-up's result, the image
 * is cached on the host under a hash of what it depends on; later sandboxes of the session use it as long as it is there.
 */
import { buildCommand, type ImageBuild, type Setup } from "../config/sandbox-settings.ts";
import { imageRefusal } from "../config/operator-policy.ts";
import { cutTail, shorten } from "../text/cut.ts";
import { retryable } from "../contract/failures.ts";
import type { AgentDeps } from "../runtime/deps.ts";
import { contextSource } from "../sandbox/agent/sources.ts";
import {
  type BuildOrder,
  type BuildResult,
  type KeptSetUps,
  ofOwner,
  sandboxSpec,
} from "../sandbox/sandbox-host.ts";
import { endOf, lastLine, wholeOutput } from "../sandbox/own-command.ts";
import { type CommandState, type Sandbox, SandboxLost } from "../sandbox/sandbox.ts";
import type { EventData } from "../store/event.ts";
import { appendEvents } from "../store/events.ts";
import type { Session } from "../store/sessions.ts";
import { watchEgress } from "./egress.ts";
import { keyOf, openKept, runSetUpProgram, MAX_COMMAND_CHARS, MAX_OUTPUT_CHARS } from "./kept-set-up.ts";
import type { WorkspaceDeps } from "../runtime/deps.ts";

/** Limit of a context's tar, which is stored in the sandbox while it is read. Chosen: the same as for a checkpoint. */
const MAX_CONTEXT_BYTES = 256 * 1024 * 1024;

type Failed = Omit<EventData["setup:ended"], "durationMs">;

export interface BuildRequest {
  readonly session: Session;
  readonly sandbox: Sandbox;
  readonly setup: Setup;
  readonly step: number;
  /** The image that an earlier sandbox of the session was made from. */
  readonly before: string | undefined;
}

/** @returns the sandbox that is made from the image, or how the build failed @throws SandboxUnavailable, SandboxRefused (fatal) */
export async function openBuilt(
  deps: WorkspaceDeps & Pick<AgentDeps, "sanitizer" | "policy">,
  build: ImageBuild,
  request: BuildRequest,
  signal: AbortSignal,
): Promise<{ readonly ready: Sandbox; readonly image: string } | { readonly failed: Failed }> {
  const { session, sandbox, step, before } = request;
  const { setUps } = deps.sandboxHost;
  if (setUps === undefined) throw new Error("This sandbox host builds no images.");
  const begun = performance.now();
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
  const built = async (key: string, kept: "taken" | "made", ready: Sandbox) => {
    const { container } = ready.identity;
    const durationMs = Math.round(performance.now() - begun);
    await appendEvents(deps.store.db, session.id, session.epoch, [
      { type: "setup:built", step, data: { container, image: key, kept, durationMs, output } },
    ]);
    return { ready, image: key };
  };

  const earlier = before === undefined ? undefined : await openKept(deps, session, { key: before }, signal);
  if (before !== undefined && earlier !== undefined) return built(before, "taken", earlier);
  const asked = await contextFacts(sandbox, build);
  if ("trouble" in asked) return failed(asked.trouble);
  const key = imageKey(session, build, asked.hash);
  const taken = await openKept(deps, session, { key }, signal);
  if (taken !== undefined) return built(key, "taken", taken);

  const egress = watchEgress(deps, session, step);
  try {
    await egress.begin(sandbox);
    const result = await buildFrom(
      setUps,
      request,
      { ...asked, build, key, layers: layersKey(session, sandbox), refuseImage: imageRule(deps) },
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
  return keyOf(config, inherited === undefined ? `session ${id}` : ofOwner(inherited, owner), depends);
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
  const end = await endOf(sandbox, await runContext(sandbox, "hash", build));
  return "out" in end ? (JSON.parse(end.out) as ContextFacts) : { trouble: troubleIn(end.words) };
}

const troubleIn = (words: string): string => lastLine(words) || "the context could not be packed";

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
      const end = await endOf(sandbox, state);
      return { output: "", failed: troubleIn("words" in end ? end.words : "") };
    }
    if (state.outBytes > MAX_CONTEXT_BYTES)
      return {
        output: "",
        failed: `the context has more than ${MAX_CONTEXT_BYTES / 2 ** 20} MiB; leave some out by .dockerignore`,
      };
    const { args, target } = build;
    const context = wholeOutput(sandbox, state);
    const order = { context, dockerfile, args, target, timeoutMs: setup.timeout, ...rules };
    return await setUps.build(sandboxSpec(session.id, session.config, session.owner), key, order, signal);
  } finally {
    await sandbox.discard(state.id);
  }
}

/** @throws SandboxLost */
async function runContext(sandbox: Sandbox, what: "hash" | "tar", build: ImageBuild): Promise<CommandState> {
  const order = { do: what, dockerfile: build.dockerfile, context: build.context };
  const source = ["LONGHAUL_CONTEXT", contextSource] as const;
  const state = await runSetUpProgram(sandbox, source, order, MAX_CONTEXT_BYTES);
  if (state.kind === "lost") throw new SandboxLost("The sandbox was restarted during its set-up.");
  return state;
}
