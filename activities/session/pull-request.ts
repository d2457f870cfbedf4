/** The pull request of a session's branch: its text, and what it gets besides. */
import { areFormed, knownPerson } from "../config/commit-settings.ts";
import { noForge } from "../config/git-settings.ts";
import { shorten, cutChars } from "../text/cut.ts";
import type { Publication, PublishInput } from "../contract/delivery.ts";
import { accessOf, type AgentDeps } from "../runtime/deps.ts";
import { listPublications } from "../store/repositories.ts";
import type { Session } from "../store/sessions.ts";
import { roundSpans } from "../store/follows.ts";
import { lastAnswer } from "../store/transcript.ts";
import { newestVerifications } from "../store/verifications.ts";
import { type ForgeCall, ForgeRefusal } from "../forge/calls.ts";
import { isRoundMessage } from "../contract/guidance.ts";
import { findForge } from "../forge/recognise.ts";
import { lsRemote } from "../git/remote.ts";
import { CredentialUnavailable, refusal, type Refusal, toRefusal } from "../git/trouble.ts";
import {
  addExtras,
  linkedIssue,
  openPullRequest,
  type OpenedPullRequest,
  type PullRequestExtras,
} from "../forge/open-pull-request.ts";
import { harmlessPost } from "../forge/harmless-post.ts";
import type { GitAccess } from "../git/git-access.ts";
import { updateMirror } from "../git/mirror.ts";
import { GitFailed, runGit } from "../git/run-git.ts";
import { announceIfInCharge, type Delivery, pushesOf, record, refuse, takenOver } from "./publication.ts";

const ASK_MS = 60_000;
const MAX_TITLE_CHARS = 72;
/** GitHub takes 65,536 characters. */
const MAX_TEXT_CHARS = 60_000;

export async function deliverPullRequest(delivery: Delivery): Promise<Publication> {
  const { branch, deps, input } = delivery;
  const [pushed] = (await pushesOf(delivery)).filter(({ status }) => status === "done");
  const begun = takenOver(delivery) && delivery.repository.baseCommit;
  const commit = pushed?.commit ?? begun;
  if (commit === undefined) return { outcome: "nothing", branch };
  const wasBegun = await announceIfInCharge(delivery, { kind: "pull-request", commit });
  const opened = await open(delivery, commit);
  if ("refused" in opened) return refuse(delivery, { commit, kind: "pull-request", ...opened });
  const { url, number, state } = opened;
  // It was made by an attempt that ended before it could say so.
  const isOurs = wasBegun && opened.isOwn && !(await wasOpened(delivery, url));
  const created = opened.created || isOurs;
  const { made } = opened;
  const extras = created && made ? await addExtras(made.call, opened, toExtras(delivery)) : [];
  const remarks = [...(made?.remarks ?? []), ...extras].map(deps.sanitizer.clean);
  const data = { url, number, created, state, remarks: remarks.length === 0 ? undefined : remarks };
  const event = { type: "git:pull-request", step: input.step, data } as const;
  await record(delivery, { kind: "pull-request", commit, url, status: "done", remarks: data.remarks }, event);
  return { outcome: "done", branch, commit, url, number };
}

async function wasOpened({ deps, session }: Delivery, url: string): Promise<boolean> {
  const rows = await listPublications(deps.store.db, session.id);
  return rows.some((row) => row.kind === "pull-request" && row.status === "done" && row.url === url);
}

/** What it gets besides its text; and what of that cannot be asked for. */
function toExtras({ deps, session, git, input }: Delivery): PullRequestExtras {
  const { labels, reviewers, assignOwner } = git.pullRequest;
  const { login } = knownPerson(deps.policy, session.owner);
  const unknown = `the forge's name of the owner is not known (people.${session.owner ?? "…"}.login of the worker's policy)`;
  const wantsOwner = assignOwner || reviewers.includes("owner");
  return {
    labels,
    reviewers: reviewers.flatMap((name) => (name === "owner" ? (login ?? []) : name.replace(/^@/, ""))),
    assignee: assignOwner ? login : undefined,
    isDraft: input.draft === true,
    remarks:
      wantsOwner && login === undefined
        ? [`nobody is assigned or asked for a review as the owner: ${unknown}`]
        : [],
  };
}

interface Opened extends OpenedPullRequest {
  /** Absent if the session took it over. */
  readonly made?: { readonly call: ForgeCall; readonly remarks: readonly string[] };
}

async function open(
  delivery: Delivery,
  commit: string,
): Promise<Opened | (Refusal & { readonly retryAfterMs?: number | undefined })> {
  const { deps, scope, session, git, repository, branch, input } = delivery;
  const access = accessOf(deps);
  const { signal } = scope;
  const { url } = repository;
  const ref = repository.ref ?? undefined;
  const forge = await findForge(url, git.forge, signal);
  if (forge === undefined) return refusal(noForge(url));
  const known = takenOver(delivery);
  // Its text and its state are others'.
  if (known !== undefined) return { ...known, created: false, isOwn: false };
  const remote = await lsRemote(access, url, [`refs/heads/${ref ?? branch}`], { signal, timeoutMs: ASK_MS });
  if ("trouble" in remote) return toRefusal(remote.trouble);
  // If the session started from a branch, the pull request is into it.
  const isBranch = ref !== undefined && ref !== branch && remote.refs.has(`refs/heads/${ref}`);
  const into = isBranch ? ref : remote.defaultBranch;
  if (into === undefined) return refusal("the remote has no default branch");
  const lines = await changedLines(access, url, { into, commit, signal });
  try {
    // The interface of github.com has another host than its repositories.
    const call = { forge, token: await access.tokenFor(url, signal), signal };
    const opened = await openPullRequest(call, {
      session: session.id,
      branch,
      commit,
      into,
      draft: input.draft === true,
      title: input.title ?? titleOf(session.task),
      body: [
        harmlessPost(cutChars((await saidAtTheEnd(delivery)).trim(), MAX_TEXT_CHARS)),
        ...issuePart(git, linkedIssue(session.task, url, forge)),
        ...(await verifiedPart(deps, session, { input, pushed: commit })),
        ...sizePart(lines, git.pullRequest.warnLines),
        `Longhaul-Session: ${session.id}`,
      ].join("\n\n"),
    });
    return { ...opened, made: { call, remarks: lines === undefined ? [NOT_COUNTED] : [] } };
  } catch (error) {
    if (!(error instanceof CredentialUnavailable || error instanceof ForgeRefusal)) throw error;
    const retryAfterMs = error instanceof ForgeRefusal ? error.retryAfterMs : undefined;
    return { refused: error.message, isPassing: error.isPassing, retryAfterMs };
  }
}

const NOT_COUNTED = "how many lines it changes could not be counted";

/** What it says in a round of following is about that round: the pull request is about all of the work. */
async function saidAtTheEnd({ deps, session }: Delivery): Promise<string> {
  const { db } = deps.store;
  const besides = await roundSpans(db, session.id, isRoundMessage);
  const answer = (await lastAnswer(db, session.id, besides)) ?? (await lastAnswer(db, session.id));
  return (answer?.content ?? []).map((part) => (part.type === "text" ? part.text : "")).join("");
}

const issuePart = ({ pullRequest }: Delivery["git"], issue: number | undefined): string[] =>
  issue === undefined ? [] : [`${pullRequest.closes ? "Closes" : "For"} #${issue}`];

const sizePart = (lines: number | undefined, most: number): string[] =>
  lines === undefined || lines <= most
    ? []
    : [`**Large:** it changes ${grouped(lines)} lines, more than ${grouped(most)}.`];

const grouped = (count: number): string => count.toLocaleString("en-US");

/** Lines added and removed since the branch left the one that it goes into. @returns undefined if git cannot say */
async function changedLines(
  access: GitAccess,
  url: string,
  { into, commit, signal }: { readonly into: string; readonly commit: string; readonly signal: AbortSignal },
): Promise<number | undefined> {
  try {
    const mirror = await updateMirror(access, url, { wants: commit, signal });
    const args = ["diff", "--shortstat", "--no-ext-diff", "--no-textconv", `refs/heads/${into}...${commit}`];
    const { code, out } = await runGit(access, args, { cwd: mirror, signal, timeoutMs: ASK_MS });
    const counts = [...out.matchAll(/(\d+) (?:insertion|deletion)/g)].map(([, count]) => Number(count));
    return code === 0 ? counts.reduce((sum, count) => sum + count, 0) : undefined;
  } catch (error) {
    signal.throwIfAborted();
    if (!(error instanceof GitFailed)) throw error;
    return undefined;
  }
}

/** One line for each command of `verify`, and the commit that it was run on; nothing if the step was not verified. */
async function verifiedPart(
  { store }: Pick<AgentDeps, "store">,
  { id: sessionId, epoch, config }: Session,
  { input: { step }, pushed }: { readonly input: PublishInput; readonly pushed: string },
): Promise<string[]> {
  const rows = await newestVerifications(store.db, { sessionId, epoch, step });
  const [first] = rows;
  if (first === undefined) return [];
  // Written anew, it has the same files under the name that people see.
  const isFormed = config.repository !== undefined && areFormed(config.repository);
  const at = isFormed && first.commit !== null ? pushed : first.commit;
  const code = (text: string) => `\`${text.replaceAll("`", "'").replaceAll(/\s+/g, " ")}\``;
  const lines = rows.map(({ text, outcome, exitCode, ms }) => {
    const how = outcome === "failed" && exitCode !== null ? ` (exit code ${exitCode})` : "";
    return `- ${code(text)}: ${outcome === "changed-checks" ? "passed" : outcome}${how}, ${Math.round(ms / 1_000)} s`;
  });
  const changed = rows.flatMap(({ protectedPaths }) => protectedPaths ?? []);
  const unique = [...new Set(changed)].slice(0, MAX_CHANGED_NAMED).map(code);
  const isRestored = config.verify?.onProtected === "restore";
  const how = isRestored ? ", and put back for that as the session found them" : "";
  return [
    [`Verified at ${at ?? "the saved files"}:`, ...lines].join("\n"),
    ...(unique.length === 0 ? [] : [`Files that decide about it were changed${how}: ${unique.join(", ")}`]),
  ];
}

const MAX_CHANGED_NAMED = 50;

/** The task's first line. */
const titleOf = (task: string): string => shorten(task.trim().split("\n", 1)[0] ?? "", MAX_TITLE_CHARS);
