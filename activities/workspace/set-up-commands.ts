/** Runs the commands of a project's set-up in a sandbox: a session's, or one in which its base is made. */
import type { Setup } from "../config/sandbox-settings.ts";
import type { WorkspaceDeps } from "../runtime/deps.ts";
import { commandOutput } from "../sandbox/command-output.ts";
import { type Sandbox, SandboxLost } from "../sandbox/sandbox.ts";
import type { EventData } from "../store/event.ts";
import type { Session } from "../store/sessions.ts";
import { cutTail, shorten } from "../text/cut.ts";
import { watchEgress } from "./egress.ts";
import { howItEnded, MAX_COMMAND_CHARS, MAX_OUTPUT_CHARS } from "./set-up-words.ts";

/** The sandbox ends a command at its time; we look again this much later. */
const MARGIN_MS = 5_000;

interface SetUpRun {
  readonly session: Session;
  readonly sandbox: Sandbox;
  readonly setup: Setup;
  readonly step: number;
}

/**
 * Idempotent for a sandbox: the attempt after a lost one follows what was started.
 * @throws SandboxLost; the signal's reason
 */
export async function runCommands(
  deps: Pick<WorkspaceDeps, "store" | "sanitizer">,
  { session, sandbox, setup, step }: SetUpRun,
  signal: AbortSignal,
): Promise<Omit<EventData["setup:ended"], "durationMs">> {
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
