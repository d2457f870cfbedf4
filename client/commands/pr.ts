/** `longhaul pr ID`: pushes a session's work, and opens or updates its pull request. */
import type { Command } from "commander";
import type { Output } from "../console/output.ts";
import { SESSION } from "../sessions/with-session.ts";
import { given } from "../console/given.ts";
import { deliver, NO_SETUP } from "./push.ts";

interface PullRequestFlags {
  readonly draft?: boolean;
  readonly ready?: boolean;
  readonly title?: string;
  readonly setup: boolean;
}

export function pullRequestCommand(command: Command, output: Output) {
  command
    .argument("<id>", SESSION)
    .option("--draft", "as a draft")
    .option("--ready", "ready for review (default)")
    .option("--title <text>", "title (default: the task's first line)")
    .option("--no-setup", NO_SETUP);
  return (reference: string, { draft = false, ready = false, title, setup }: PullRequestFlags) => {
    const pr = draft && !ready ? "draft" : "ready";
    return deliver(reference, setup, { push: true, pr, ...given({ title }) }, output);
  };
}
