/** The commit to deliver: uncommitted work is committed, and what is outside of it is found. */
import { agentIdentity } from "../config/commit-settings.ts";
import { prepareWork, type Prepared } from "../git/sandbox-git.ts";
import { lsRemote } from "../git/remote.ts";
import type { CommandSandbox } from "../sandbox/own-command.ts";
import type { PublicationRow } from "../store/repositories.ts";
import { accessOf } from "../runtime/deps.ts";
import type { Delivery } from "./publication.ts";

const COMMIT_MESSAGE = "Commit what the session left uncommitted";
const ASK_MS = 60_000;

/** The remote is asked only if there is work outside of HEAD. Idempotent. @returns `trouble` if the work cannot be delivered */
export async function prepareDelivery(
  { deps, scope, session, git, repository }: Omit<Delivery, "branch" | "input">,
  sandbox: CommandSandbox,
  pushes: readonly PublicationRow[],
  { atEnd }: { readonly atEnd: boolean },
): Promise<Prepared | { readonly trouble: string }> {
  const { url, baseCommit: base } = repository;
  const commit = atEnd
    ? {
        message: COMMIT_MESSAGE,
        author: agentIdentity(git),
        date: new Date(scope.scheduledAtMs).toISOString(),
      }
    : undefined;
  const delivered = pushes.filter(({ status }) => status === "done");
  const onto = delivered.filter(({ epoch }) => epoch === session.epoch).slice(0, 1);
  const deliveredCommits = delivered.map((row) => row.commit);
  const request = {
    base,
    known: deliveredCommits,
    onto: onto.map((row) => row.commit),
    commit,
    lfs: git.lfs,
    // What is verified is what the files are: this reads all of them.
    distrust: session.config.verify === undefined ? undefined : true,
  };
  const first = await prepareWork(sandbox, request);
  if ("trouble" in first || !first.isElsewhere) return first;
  const remote = await lsRemote(accessOf(deps), url, ["refs/*"], { signal: scope.signal, timeoutMs: ASK_MS });
  return prepareWork(
    sandbox,
    "trouble" in remote
      ? { ...request, remotes: true }
      : { ...request, known: [...new Set(remote.refs.values())] },
  );
}
