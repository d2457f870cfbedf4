/**
 * Sets a project up in each new sandbox of its session: the commands of `sandbox.setup`, once per container. They run under
 * the sandbox's supervisor by fixed ids, so that the attempt after a lost one finds what was started.
 */
import { buildOf, setupOf, type Setup, buildCommand } from "../config/sandbox-settings.ts";
import { fatal, superseded } from "../contract/failures.ts";
import type { AgentDeps } from "../runtime/deps.ts";
import { type Sandbox, SandboxLost } from "../sandbox/sandbox.ts";
import { shareWork, type SharedWork } from "../sandbox/shared-work.ts";
import type { EventData } from "../store/event.ts";
import { appendEvents } from "../store/events.ts";
import { addNotice, findSetUp, type KnownSetUp } from "../store/sandboxes.ts";
import type { Session } from "../store/sessions.ts";
import { lockRun } from "../store/session-locks.ts";
import { commandOutput } from "../sandbox/command-output.ts";
import { cutTail, shorten } from "../text/cut.ts";
import { openBuilt } from "./built-image.ts";
import { watchEgress } from "./egress.ts";
import {
  keptSetUp,
  failureText,
  howItEnded,
  MAX_COMMAND_CHARS,
  MAX_OUTPUT_CHARS,
  readyNotice,
} from "./kept-set-up.ts";
import type { SessionSandboxes } from "./session-sandbox.ts";
import type { WorkspaceDeps } from "../runtime/deps.ts";

/** The sandbox ends a command at its time; we look again this much later. */
const MARGIN_MS = 5_000;

type SetUpDeps = WorkspaceDeps & Pick<AgentDeps, "sanitizer" | "policy">;

export type SetUps = ReturnType<typeof createSetUps>;

export function createSetUps(deps: SetUpDeps) {
  /** By session: its newest container that is set up or being set up. */
  const known = new Map<string, { readonly container: string; readonly work: SharedWork<Sandbox> }>();
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
      const before = known.get(session.id);
      if (before?.container === container && before.work.canJoin) return before.work.join(signal);
      const work = shareWork((stop) => setUp(deps, { session, sandbox, setup, step }, stop));
      const entry = { container, work };
      known.set(session.id, entry);
      try {
        const ready = await work.join(signal);
        if (known.get(session.id) === entry)
          known.set(session.id, { container: ready.identity.container, work });
        return ready;
      } catch (error) {
        if (known.get(session.id) === entry) known.delete(session.id);
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

interface Order {
  readonly session: Session;
  readonly sandbox: Sandbox;
  readonly setup: Setup;
  readonly step: number;
}

type Ended = EventData["setup:ended"];

async function setUp(deps: SetUpDeps, order: Order, signal: AbortSignal): Promise<Sandbox> {
  const { session, sandbox, setup, step } = order;
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
  const { ended, ready } = await takeOrRun(deps, order, before, signal);
  await db.transaction(async (tx) => {
    if (!(await lockRun(tx, session.id, session.runId ?? "")))
      throw superseded("the set-up of its sandbox was left as it is");
    // An earlier attempt that was thought dead may have finished too.
    if ((await findSetUp(tx, session.id, ended.container)).ended !== undefined) return;
    await appendEvents(tx, session.id, session.epoch, [{ type: "setup:ended", step, data: ended }]);
    if (ended.status === "done" || setup.optional)
      await addNotice(tx, session.id, readyNotice(ended, commands, before.again));
  });
  unlessFailed(ended, setup);
  return ready;
}

async function takeOrRun(
  deps: SetUpDeps,
  given: Order,
  { again, built, image: before }: KnownSetUp,
  signal: AbortSignal,
): Promise<{ readonly ended: Ended; readonly ready: Sandbox }> {
  const { session, setup, step } = given;
  const build = buildOf(session.config.sandbox);
  const begun = performance.now();
  const durationMs = () => Math.round(performance.now() - begun);
  let { sandbox } = given;
  let image = build === undefined ? undefined : before;
  if (build !== undefined && !built) {
    const made = await openBuilt(deps, build, { ...given, before }, signal);
    if ("failed" in made) return { ended: { ...made.failed, durationMs: durationMs() }, ready: sandbox };
    ({ ready: sandbox, image } = made);
  }
  const order = { ...given, sandbox };
  const kept = keptSetUp(deps, { session, sandbox, setup, image });
  const taken = await kept?.take(signal);
  if (taken !== undefined) {
    const { container } = taken.identity;
    const ended = { container, status: "done", output: "", kept: "taken", durationMs: durationMs() } as const;
    return { ended, ready: taken };
  }
  const ran = await runCommands(deps, order, signal);
  const ended = { ...ran, durationMs: durationMs() };
  // After the first step the agent may have changed files that the commands use.
  if (ended.status === "failed" || kept === undefined || again || step > 1) return { ended, ready: sandbox };
  const notKept = await kept.keep();
  return {
    ended: { ...ended, ...(notKept === undefined ? { kept: "made" } : { notKept: shorten(notKept, 300) }) },
    ready: sandbox,
  };
}

/** @throws SetupFailed (fatal) */
function unlessFailed(ended: Ended, { optional }: Setup): void {
  if (ended.status === "failed" && !optional) throw fatal("SetupFailed", failureText(ended));
}

async function runCommands(
  deps: SetUpDeps,
  { session, sandbox, setup, step }: Order,
  signal: AbortSignal,
): Promise<Omit<Ended, "durationMs">> {
  const { container, boot } = sandbox.identity;
  const egress = watchEgress(deps, session, step);
  const facts = { container, output: "" };
  try {
    await egress.begin(sandbox);
    for (const [at, command] of setup.commands.entries()) {
      const id = `setup-${boot}-${at}`;
      const state = await sandbox.run(
        { id, argv: ["bash", "-c", command], mergeOutput: true, timeoutMs: setup.timeout },
        { signal, timeoutMs: setup.timeout + MARGIN_MS },
      );
      if (state.kind === "lost") throw new SandboxLost(`The sandbox was restarted during its set-up.`);
      const { text } = await commandOutput(sandbox, state, MAX_OUTPUT_CHARS);
      facts.output = cutTail(deps.sanitizer.clean(text).trimEnd(), MAX_OUTPUT_CHARS);
      if (state.kind === "exited" && state.exitCode === 0) continue;
      const refused = await egress.end();
      return {
        ...facts,
        status: "failed",
        command: shorten(deps.sanitizer.clean(command), MAX_COMMAND_CHARS),
        how: [howItEnded(state, setup), ...(refused === undefined ? [] : [refused])].join("; "),
      };
    }
    await egress.end();
    return { ...facts, status: "done" };
  } finally {
    egress.stop();
  }
}
