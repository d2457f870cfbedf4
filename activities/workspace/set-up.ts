/**
 * Sets a project up in each new sandbox of its session: the commands of `sandbox.setup`, once a container. They run under the
 * sandbox's supervisor by names of their own, so that an attempt that follows a lost one finds what that began.
 */
import { setupOf, type Setup } from "../config/setup-settings.ts";
import { fatal, superseded } from "../contract/failures.ts";
import type { AgentDeps } from "../runtime/deps.ts";
import type { Sandbox } from "../sandbox/sandbox.ts";
import { SandboxLost } from "../sandbox/sandbox-lost.ts";
import { shareWork, type SharedWork } from "../sandbox/shared-work.ts";
import type { EventData } from "../store/event.ts";
import { appendEvents } from "../store/events.ts";
import { addNotice } from "../store/sandboxes.ts";
import { findSetUp } from "../store/set-ups.ts";
import type { Session } from "../store/sessions.ts";
import { lockRun } from "../store/transcript.ts";
import { outputOf } from "../tools/command-output.ts";
import { cutTail, shorten } from "../contract/cut-text.ts";
import { watchEgress } from "./egress.ts";
import type { SessionSandboxes } from "./session-sandbox.ts";
import { failureText, howItEnded, readyNotice } from "./set-up-words.ts";

/** Of the last command's output: in the event, and for the model. */
const MAX_OUTPUT_CHARS = 4_000;
/** Of a command, as people read it. */
const MAX_COMMAND_CHARS = 200;
/** The sandbox ends a command at its time; we look again this much later. */
const MARGIN_MS = 5_000;

export interface SetUps {
  /**
   * Returns when the sandbox is set up. Idempotent; several callers wait for one set-up.
   * @throws SetupFailed (fatal) where a command failed and the set-up is not optional
   */
  ensure(session: Session, sandbox: Sandbox, step: number, signal?: AbortSignal): Promise<void>;
}

type SetUpDeps = Pick<AgentDeps, "store" | "notifier" | "sanitizer">;

export function createSetUps(deps: SetUpDeps): SetUps {
  /** By session: its newest container that is set up, or on its way. */
  const known = new Map<string, { readonly container: string; readonly work: SharedWork<void> }>();
  return {
    async ensure(session, sandbox, step, signal) {
      const setup = setupOf(session.config.sandbox);
      if (setup === undefined) return;
      const { container } = sandbox.identity;
      const before = known.get(session.id);
      if (before?.container === container && before.work.canJoin) return before.work.join(signal);
      const work = shareWork((stop) => setUp(deps, { session, sandbox, setup, step }, stop));
      const entry = { container, work };
      known.set(session.id, entry);
      try {
        await work.join(signal);
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
      await setUps.ensure(session, opened.sandbox, step, signal);
      return opened;
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

async function setUp(deps: SetUpDeps, order: Order, signal: AbortSignal): Promise<void> {
  const { session, sandbox, setup, step } = order;
  const { db } = deps.store;
  const { container } = sandbox.identity;
  const before = await findSetUp(db, session.id, container);
  if (before.ended !== undefined) return unlessFailed(before.ended, setup);
  if (!before.started) {
    const commands = setup.commands.map((command) =>
      shorten(deps.sanitizer.clean(command), MAX_COMMAND_CHARS),
    );
    await appendEvents(db, session.id, session.epoch, [
      { type: "setup:started", step, data: { container, commands } },
    ]);
    deps.notifier.wake(session.id);
  }
  const ended = await runCommands(deps, order, signal);
  await db.transaction(async (tx) => {
    if (!(await lockRun(tx, session.id, session.runId ?? "")))
      throw superseded("the set-up of its sandbox was left as it is");
    await appendEvents(tx, session.id, session.epoch, [{ type: "setup:ended", step, data: ended }]);
    if (ended.status === "done" || setup.optional)
      await addNotice(tx, session.id, readyNotice(ended, setup, before.again));
  });
  deps.notifier.wake(session.id);
  unlessFailed(ended, setup);
}

/** @throws SetupFailed (fatal) */
function unlessFailed(ended: Ended, { optional }: Setup): void {
  if (ended.status === "failed" && !optional) throw fatal("SetupFailed", failureText(ended));
}

async function runCommands(
  deps: SetUpDeps,
  { session, sandbox, setup, step }: Order,
  signal: AbortSignal,
): Promise<Ended> {
  const { container, boot } = sandbox.identity;
  const begun = performance.now();
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
      const { text } = await outputOf(sandbox, state, MAX_OUTPUT_CHARS);
      facts.output = cutTail(deps.sanitizer.clean(text).trimEnd(), MAX_OUTPUT_CHARS);
      if (state.kind === "exited" && state.exitCode === 0) continue;
      const refused = await egress.end();
      return {
        ...facts,
        status: "failed",
        command: shorten(deps.sanitizer.clean(command), MAX_COMMAND_CHARS),
        how: [howItEnded(state, setup), ...(refused === undefined ? [] : [refused])].join("; "),
        durationMs: Math.round(performance.now() - begun),
      };
    }
    await egress.end();
    return { ...facts, status: "done", durationMs: Math.round(performance.now() - begun) };
  } finally {
    egress.stop();
  }
}
