/**
 * The commits as they are pushed: the session's own in the style and with the signature that were asked for; and the way back, by which
 * the sandbox has them under the same names. What is not handed back, such as because the agent has committed meanwhile, gets the same
 * names with the next push.
 */
import { areFormed, commitStyle, knownPerson } from "../config/commit-settings.ts";
import type { GitAccess } from "../git/git-access.ts";
import { hasCommit } from "../git/mirror.ts";
import type { Relay } from "../git/relay.ts";
import { rewriteOwn, type Rewritten } from "../git/rewrite-commits.ts";
import { GitFailed, runGit } from "../git/run-git.ts";
import { must, shell } from "../git/sandbox-git.ts";
import { withSigner } from "../git/signing-key.ts";
import { CredentialUnavailable, type Refusal, toRefusal } from "../git/trouble.ts";
import { accessOf, type AgentDeps } from "../runtime/deps.ts";
import type { CommandSandbox } from "../sandbox/own-command.ts";
import type { PublicationRow } from "../store/repositories.ts";
import type { Session } from "../store/sessions.ts";
import type { Delivery } from "./publication.ts";

export interface FormedCommits extends Rewritten {
  /** What could not be had as it was asked for. */
  readonly remarks: readonly string[];
}

interface FormedDelivery extends Pick<Delivery, "git" | "branch"> {
  readonly deps: Pick<AgentDeps, "git" | "policy">;
  readonly session: Pick<Session, "owner"> & { readonly config: Pick<Session["config"], "model"> };
  readonly repository: Pick<Delivery["repository"], "baseCommit">;
}

/** @returns the commit as it is if nothing else was asked for */
export async function formCommits(
  { deps, session, git, repository, branch }: FormedDelivery,
  from: {
    readonly relay: Relay;
    readonly mirror: string;
    readonly commit: string;
    readonly pushes: readonly Pick<PublicationRow, "commit" | "status">[];
  },
): Promise<FormedCommits | Refusal> {
  const { relay, mirror, commit, pushes } = from;
  if (!areFormed(git)) return { commit, names: new Map(), foreign: 0, remarks: [] };
  const access = accessOf(deps);
  const { owner } = session;
  const known = await branchesOf(access, mirror);
  if (known === undefined)
    return {
      refused: "it cannot be seen which commits the remote has, and only others are changed",
      isPassing: true,
    };
  const own = known.flatMap(({ id, name }) => (name === `refs/heads/${branch}` ? [id] : []));
  const pushed = pushes.flatMap((row) => (row.status === "refused" ? [] : [row.commit]));
  const there = await Promise.all(pushed.map((id) => hasCommit(access, relay.folder, id)));
  const delivered = [...new Set([...own, ...pushed.filter((_, index) => there[index] === true)])];
  const { style, remarks } = commitStyle(git, {
    owner,
    person: knownPerson(deps.policy, owner),
    model: session.config.model,
  });
  const rewriteOrder = {
    commit,
    onForge: [...new Set([repository.baseCommit, ...delivered, ...known.map(({ id }) => id)])],
    delivered,
    style,
    pattern: git.message?.onMismatch === "refuse" ? git.message.pattern : undefined,
  };
  try {
    const rewritten =
      git.sign === "none"
        ? await rewriteOwn(relay, rewriteOrder)
        : await withSigner(access.signing, git.sign, (signer) =>
            rewriteOwn(relay, { ...rewriteOrder, signer }),
          );
    if ("refused" in rewritten) return rewritten;
    const unsigned = git.sign === "none" || rewritten.foreign === 0 ? [] : [notSigned(rewritten.foreign)];
    return { ...rewritten, remarks: [...remarks, ...unsigned] };
  } catch (error) {
    // Its own copy lacks what the mirror should lend it, so what the remote has cannot be told from what it has not.
    if (error instanceof GitFailed) return { refused: error.message, isPassing: true };
    if (!(error instanceof CredentialUnavailable)) throw error;
    return toRefusal(error.trouble);
  }
}

/** The commits of a mirror's branches and tags; undefined if there is none to be read. */
async function branchesOf(
  access: GitAccess,
  mirror: string,
): Promise<readonly { readonly id: string; readonly name: string }[] | undefined> {
  const format = "%(objecttype) %(objectname) %(*objecttype) %(*objectname) %(refname)";
  const args = ["for-each-ref", `--format=${format}`];
  const refs = await runGit(access, args, { cwd: mirror }).catch(() => undefined);
  if (refs?.code !== 0) return undefined;
  return refs.out.split("\n").flatMap((line) => {
    const [type, id = "", peeledType, peeled = "", name = ""] = line.split(" ");
    if (type === "commit") return [{ id, name }];
    return peeledType === "commit" ? [{ id: peeled, name }] : [];
  });
}

const notSigned = (count: number): string =>
  `${count === 1 ? "1 commit is" : `${count} commits are`} not signed: by others, and on no branch of the remote`;

/** Nothing of the workspace runs. If the branch has moved on, it stays: the objects are there for the next time. */
const TAKE_BACK = `git index-pack --stdin >/dev/null
git -c core.hooksPath=/dev/null update-ref -m 'longhaul: as pushed' "$REF" "$NEW" "$OLD" || true`;

/**
 * Gives the sandbox the commits that were pushed for its own, and moves its branch to them if it is where it was. The files are the same.
 * @throws SandboxUnavailable (retryable), SandboxLost
 */
export async function handBack(
  sandbox: CommandSandbox,
  { access, folder }: Relay,
  { ref, head, formed }: { readonly ref: string; readonly head: string; readonly formed: Rewritten },
): Promise<void> {
  if (formed.names.size === 0) return;
  const input = `${[...new Set(formed.names.values())].join("\n")}\n`;
  const packed = await runGit(access, ["pack-objects", "--stdout", "-q"], {
    cwd: folder,
    input,
    encoding: "latin1",
  });
  if (packed.code !== 0) return;
  await must(sandbox, "take the commits over as they were pushed", {
    argv: shell(TAKE_BACK),
    env: { REF: ref, NEW: formed.commit, OLD: head },
    stdin: Buffer.from(packed.out, "latin1"),
  });
}
