/** What people and the model read of a project's set-up. */
import type { Setup } from "../config/sandbox-settings.ts";
import type { CommandState } from "../sandbox/sandbox.ts";
import type { EventData } from "../store/event.ts";
import { cutTail, shorten } from "../text/cut.ts";

type Ended = EventData["setup:ended"];

/** Most characters of the last command's output that the event and the model get. */
export const MAX_OUTPUT_CHARS = 4_000;
/** Most characters of a command that people are shown. */
export const MAX_COMMAND_CHARS = 200;
/** A failure's message has 1,000 characters in all. */
const MAX_FAILURE_OUTPUT_CHARS = 500;
const MAX_NOTICE_OUTPUT_CHARS = 2_000;

/** How a command of the set-up ended if it did not succeed. */
export function howItEnded(state: CommandState, { timeout }: Pick<Setup, "timeout">): string {
  switch (state.kind) {
    case "exited":
      return `exit code ${state.exitCode}`;
    case "killed":
      if (state.by === "timeout") return `ended after ${timeout / 1_000} s (sandbox.setup.timeout)`;
      if (state.by === "disk") return "ended because the sandbox's disk is full (sandbox.disk)";
      return `ended by ${state.signal}`;
    case "refused":
      return `not started: ${state.reason}`;
    case "running":
    case "lost":
      return "not ended";
  }
}

export function failureText({ command = "", how = "", output }: Ended): string {
  const printed = output === "" ? "It printed nothing." : `It last printed:\n${lastOf(output)}`;
  return (
    `The project's set-up failed at \`${command}\` (${how}). No step was made, and the files are kept. Correct it ` +
    `and start again, or set sandbox.setup.optional, so that the agent works without it. ${printed}`
  );
}

const lastOf = (output: string): string => cutTail(output, MAX_FAILURE_OUTPUT_CHARS);

/** For the model, at the next step. @param again another sandbox of the session was set up before */
export function readyNotice(result: Ended, commands: readonly string[], again: boolean): string {
  const which = again ? "this new sandbox" : "this sandbox";
  if (result.status === "done")
    return `[The project's set-up has run in ${which}: ${commands.map((command) => `\`${shorten(command, 200)}\``).join(", ")}.]`;
  const printed =
    result.output === "" ? "" : ` It last printed:\n${cutTail(result.output, MAX_NOTICE_OUTPUT_CHARS)}`;
  return `[The project's set-up failed in ${which} at \`${result.command}\` (${result.how}). Look into it if the task needs it.${printed}]`;
}
