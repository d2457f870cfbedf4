/** Opens a pull request for a branch that was pushed: what it says, and to which forge it goes. */
import { forgeOf, noForge } from "../config/forge-place.ts";
import { cutChars, shorten } from "../text/cut.ts";
import type { Publication } from "../contract/delivery.ts";
import { listPublications } from "../store/repositories.ts";
import { lastAnswer } from "../store/transcript.ts";
import { openPullRequest } from "../git/forge.ts";
import { ForgeRefusal } from "../git/git-http.ts";
import { accessOf } from "./fetch-repository.ts";
import { announce, pushesOf, record, refuse, type Delivery } from "./publication.ts";
import { lsRemote } from "../git/remote.ts";
import { CredentialUnavailable, refusal, refusalOf } from "../git/trouble.ts";

const ASK_MS = 60_000;
const MAX_TITLE_CHARS = 72;
/** GitHub takes 65,536 characters. */
const MAX_TEXT_CHARS = 60_000;

export async function deliverPullRequest(delivery: Delivery): Promise<Publication> {
  const { branch, input } = delivery;
  const [pushed] = (await pushesOf(delivery)).filter(({ status }) => status === "done");
  if (pushed === undefined) return { outcome: "nothing", branch };
  const { commit } = pushed;
  const wasBegun = await announce(delivery, { kind: "pull-request", commit });
  const opened = await open(delivery, commit);
  if ("refused" in opened) return refuse(delivery, { commit, kind: "pull-request", ...opened });
  const { url, number, state } = opened;
  // It was made by an attempt that ended before it could say so.
  const isOurs = wasBegun && opened.isOwn && !(await wasOpened(delivery, url));
  const created = opened.created || isOurs;
  const data = { url, number, created, ...(state === undefined ? {} : { state }) };
  const event = { type: "git:pull-request", step: input.step, data } as const;
  await record(delivery, { kind: "pull-request", commit, url, status: "done" }, event);
  return { outcome: "done", branch, commit, url, number };
}

async function wasOpened({ deps, session }: Delivery, url: string): Promise<boolean> {
  const rows = await listPublications(deps.store.db, session.id);
  return rows.some((row) => row.kind === "pull-request" && row.status === "done" && row.url === url);
}

async function open({ deps, scope, session, git, repository, branch, input }: Delivery, commit: string) {
  const access = accessOf(deps);
  const { signal } = scope;
  const { url } = repository;
  const ref = repository.ref ?? undefined;
  const place = forgeOf(url, git.forge);
  if (place === undefined) return refusal(noForge(url));
  const remote = await lsRemote(access, url, [`refs/heads/${ref ?? branch}`], { signal, timeoutMs: ASK_MS });
  if ("trouble" in remote) return refusalOf(remote.trouble);
  // If the session started from a branch, the pull request is into it.
  const isBranch = ref !== undefined && ref !== branch && remote.refs.has(`refs/heads/${ref}`);
  const into = isBranch ? ref : remote.defaultBranch;
  if (into === undefined) return refusal("the remote has no default branch");
  const answer = await lastAnswer(deps.store.db, session.id);
  const text = (answer?.content ?? []).map((part) => (part.type === "text" ? part.text : "")).join("");
  try {
    // The interface of github.com has another host than its repositories.
    return await openPullRequest(
      { place, token: await access.tokenFor(url, signal), signal },
      {
        session: session.id,
        branch,
        commit,
        into,
        draft: input.draft === true,
        title: input.title ?? titleOf(session.task),
        body: `${cutChars(text.trim(), MAX_TEXT_CHARS)}\n\nLonghaul-Session: ${session.id}`,
      },
    );
  } catch (error) {
    if (!(error instanceof CredentialUnavailable || error instanceof ForgeRefusal)) throw error;
    return { refused: error.message, isPassing: error.isPassing };
  }
}

/** The task's first line. */
const titleOf = (task: string): string => shorten(task.trim().split("\n", 1)[0] ?? "", MAX_TITLE_CHARS);
