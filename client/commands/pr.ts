/** `longhaul pr ID`: pushes the work of a session that has ended, and opens or updates its pull request. */
import type { Command } from "commander";
import type { Output } from "../console/output.ts";
import { requireSession, SESSION, withPreparedServices } from "../sessions/with-session.ts";

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
    .option("--no-setup", "start no services or worker: they run elsewhere (or LONGHAUL_NO_SETUP=1)");
  return async (reference: string, flags: PullRequestFlags) => {
    const { deliverSession } = await import("../watch/deliver-session.ts");
    const say = (line: string) => output.note(`${line}\n`);
    return withPreparedServices(flags, say, async (services) => {
      const row = await requireSession(services, reference);
      const isDraft = flags.draft === true && flags.ready !== true;
      const title = flags.title === undefined ? {} : { title: flags.title };
      return deliverSession(services, row, { push: true, pr: isDraft ? "draft" : "ready", ...title }, output);
    });
  };
}
