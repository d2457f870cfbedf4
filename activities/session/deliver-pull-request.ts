/** What a pull request says, and to which forge. */
import { cutChars, shorten } from "../contract/cut-text.ts";
import type { GitConfig } from "../config/git-settings.ts";
import type { Queryable } from "../store/db.ts";
import { lastAnswer } from "../store/transcript.ts";
import { openPullRequest, type OpenedPullRequest } from "../git/forge.ts";
import { ForgeRefusal, forgeOf } from "../git/forge-calls.ts";
import type { GitAccess } from "../git/git-access.ts";
import { lsRemote } from "../git/remote.ts";
import { CredentialUnavailable, refusal, refusalOf, type Refusal } from "../git/trouble.ts";

const ASK_MS = 60_000;
const MAX_TITLE_CHARS = 72;
/** GitHub takes 65,536 characters. */
const MAX_BODY_CHARS = 60_000;

export interface Delivery {
  readonly access: GitAccess;
  readonly db: Queryable;
  readonly session: { readonly id: string; readonly task: string };
  readonly url: string;
  readonly forge: GitConfig["forge"];
  readonly branch: string;
  /** What the session started from: if that is a branch, the pull request is into it. */
  readonly ref: string | undefined;
  readonly draft: boolean;
  readonly title: string | undefined;
  readonly signal: AbortSignal;
}

export async function deliverPullRequest(given: Delivery): Promise<OpenedPullRequest | Refusal> {
  const { access, url, branch, ref, signal, session } = given;
  const place = forgeOf(url, given.forge);
  if (place === undefined)
    return refusal(`it is not known which forge ${url} is on: set git.forge to github or gitlab`);
  const remote = await lsRemote(access, url, [`refs/heads/${ref ?? branch}`], { signal, timeoutMs: ASK_MS });
  if ("trouble" in remote) return refusalOf(remote.trouble);
  const isBranch = ref !== undefined && ref !== branch && remote.refs.has(`refs/heads/${ref}`);
  const into = isBranch ? ref : remote.defaultBranch;
  if (into === undefined) return refusal("the remote has no default branch");
  const answer = await lastAnswer(given.db, session.id);
  const text = (answer?.content ?? []).map((part) => (part.type === "text" ? part.text : "")).join("");
  try {
    // The interface of github.com has another host than its repositories.
    return await openPullRequest(
      { place, token: await access.tokenFor(url, signal), signal },
      {
        branch,
        into,
        draft: given.draft,
        title: given.title ?? titleOf(session.task),
        body: `${cutChars(text.trim(), MAX_BODY_CHARS)}\n\nLonghaul-Session: ${session.id}\n`,
      },
    );
  } catch (error) {
    if (!(error instanceof CredentialUnavailable || error instanceof ForgeRefusal)) throw error;
    return { refused: error.message, isPassing: error.isPassing };
  }
}

/** The task's first line. */
const titleOf = (task: string): string => shorten(task.trim().split("\n", 1)[0] ?? "", MAX_TITLE_CHARS);
