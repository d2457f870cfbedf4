/** `longhaul push` and `pr`: the work of a session on a repository is delivered. */
import type { Command } from "commander";
import type { DeliveryOrder } from "../../activities/contract/delivery.ts";
import type { Output } from "../console/output.ts";
import { parseBranch } from "../sessions/flag-values.ts";
import { requireSession, SESSION, withPreparedServices } from "../sessions/with-session.ts";

/** `longhaul push ID`: delivers the work of a session on a repository after it has ended. */
export const NO_SETUP = "start no services or worker: they run elsewhere (or LONGHAUL_NO_SETUP=1)";

export function pushCommand(command: Command, output: Output) {
  command
    .argument("<id>", SESSION)
    .option("--branch <name>", "another branch than the session's", parseBranch)
    .option("--no-setup", NO_SETUP);
  return (reference: string, { branch, setup }: { readonly branch?: string; readonly setup: boolean }) =>
    deliverByReference(reference, setup, { push: true, pr: "none", branch }, output);
}

export async function deliverByReference(
  reference: string,
  setup: boolean,
  deliveryOrder: DeliveryOrder,
  output: Output,
) {
  const { deliverSession } = await import("../watch/deliver-session.ts");
  const say = (line: string) => output.note(`${line}\n`);
  return withPreparedServices({ setup }, say, async (services) =>
    deliverSession(services, await requireSession(services, reference), deliveryOrder, output),
  );
}

interface PullRequestFlags {
  readonly draft?: boolean;
  readonly ready?: boolean;
  readonly title?: string;
  readonly setup: boolean;
}

/** `longhaul pr ID`: pushes a session's work, and opens or updates its pull request. */
export function pullRequestCommand(command: Command, output: Output) {
  command
    .argument("<id>", SESSION)
    .option("--draft", "as a draft")
    .option("--ready", "ready for review (default)")
    .option("--title <text>", "title (default: the task's first line)")
    .option("--no-setup", NO_SETUP);
  return (reference: string, { draft = false, ready = false, title, setup }: PullRequestFlags) => {
    const pr = draft && !ready ? "draft" : "ready";
    return deliverByReference(reference, setup, { push: true, pr, title }, output);
  };
}
