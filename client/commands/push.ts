/** `longhaul push ID`: pushes the work of a session that has ended. */
import { InvalidArgumentError, type Command } from "commander";
import { branchName } from "../../activities/config/git-settings.ts";
import type { Output } from "../console/output.ts";
import { requireSession, SESSION, withPreparedServices } from "../sessions/with-session.ts";

interface PushFlags {
  readonly branch?: string;
  readonly setup: boolean;
}

export function pushCommand(command: Command, output: Output) {
  command
    .argument("<id>", SESSION)
    .option("--branch <name>", "another branch than the session's", branch)
    .option("--no-setup", "start no services or worker: they run elsewhere (or LONGHAUL_NO_SETUP=1)");
  return async (reference: string, flags: PushFlags) => {
    const { deliverSession } = await import("../watch/deliver-session.ts");
    const say = (line: string) => output.note(`${line}\n`);
    return withPreparedServices(flags, say, async (services) => {
      const order = {
        push: true,
        pr: "none",
        ...(flags.branch === undefined ? {} : { branch: flags.branch }),
      } as const;
      return deliverSession(services, await requireSession(services, reference), order, output);
    });
  };
}

function branch(text: string): string {
  if (!branchName.safeParse(text).success)
    throw new InvalidArgumentError("Expected a valid Git branch name.");
  return text;
}
