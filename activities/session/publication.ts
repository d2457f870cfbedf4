/** What a push and a pull request share: their input, and how their outcome is recorded; and the pull request itself. */
import type { ActivityScope } from "../runtime/activity-scope.ts";
import { areFormed } from "../config/commit-settings.ts";
import { type SessionGit, noForge } from "../config/git-settings.ts";
import { shorten, cutChars } from "../text/cut.ts";
import type { Publication, PublishInput } from "../contract/delivery.ts";
import { fatal, retryable } from "../contract/failures.ts";
import { accessOf, type AgentDeps } from "../runtime/deps.ts";
import type { Queryable } from "../store/db.ts";
import type { NewEvent } from "../store/event.ts";
import { appendEvents } from "../store/events.ts";
import {
  announcePublication,
  listPublications,
  recordPublication,
  type Repository,
} from "../store/repositories.ts";
import { addNotice, findSandbox } from "../store/sandboxes.ts";
import type { Session } from "../store/sessions.ts";
import { lockRun } from "../store/session-locks.ts";
import { roundSpans } from "../store/follows.ts";
import { lastAnswer } from "../store/transcript.ts";
import { newestVerifications } from "../store/verifications.ts";
import { ForgeRefusal } from "../forge/calls.ts";
import { isRoundMessage } from "../contract/guidance.ts";
import { openPullRequest } from "../forge/open-pull-request.ts";
import { findForge } from "../forge/recognise.ts";
import { lsRemote } from "../git/remote.ts";
import { CredentialUnavailable, refusal, toRefusal } from "../git/trouble.ts";
import { TRIES } from "../contract/tries.ts";

const MAX_REASON_CHARS = 500;

export interface Delivery {
  readonly deps: AgentDeps;
  readonly scope: ActivityScope;
  readonly session: Session;
  readonly git: SessionGit;
  readonly repository: Repository;
  readonly branch: string;
  readonly input: PublishInput;
}

/** Pushes to the branch, whatever became of them, also in abandoned epochs, newest first. */
export async function pushesOf({ deps, session, branch }: Delivery) {
  const all = await listPublications(deps.store.db, session.id);
  return all.filter(({ kind, ref }) => kind === "push" && ref === branch);
}

/**
 * Writes down what is about to be done in the world, so that a later attempt, or another run, knows whose it is.
 * @returns whether it was announced before, and its outcome is not known
 * @throws Superseded (fatal) if a newer run has the session: nothing may be done
 */
export async function announceIfInCharge(
  { deps, scope, session, branch, input }: Delivery,
  row: { readonly kind: PublishInput["kind"]; readonly commit: string },
): Promise<boolean> {
  const { id: sessionId, epoch } = session;
  const { runId } = scope;
  return deps.store.db.transaction(async (tx) => {
    if (!(await lockRun(tx, sessionId, runId)))
      throw fatal("Superseded", `A newer run has claimed session ${sessionId}; nothing was delivered.`);
    return announcePublication(tx, { ...row, ref: branch, sessionId, epoch, step: input.step, runId });
  });
}

/** @throws RepositoryUnavailable (retryable) as long as asking again may help */
export async function refuse(
  delivery: Delivery,
  facts: {
    readonly commit: string;
    readonly kind?: "pull-request" | "review";
    readonly refused: string;
    readonly isPassing?: boolean;
    /** How long a forge wants to be left alone. */
    readonly retryAfterMs?: number | undefined;
  },
): Promise<Publication> {
  const { branch, deps, input, scope } = delivery;
  const { commit, kind = "push", refused, isPassing = false, retryAfterMs: delayMs } = facts;
  if (isPassing && scope.tries < TRIES.beforeUnpublished)
    throw retryable("RepositoryUnavailable", `${refused.replace(/\.$/, "")}. It is tried again.`, {
      delayMs,
    });
  const reason = shorten(deps.sanitizer.clean(refused), MAX_REASON_CHARS);
  const event = { type: "git:refused", step: input.step, data: { branch, reason } } as const;
  await record(delivery, { kind, commit, status: "refused", reason }, event);
  return { outcome: "refused", branch, reason };
}

/** The row and its event, once: a second attempt finds the row. */
export async function record(
  { deps, scope, session, branch, input }: Delivery,
  row: Pick<
    Parameters<typeof recordPublication>[1],
    "kind" | "commit" | "url" | "status" | "reason" | "remarks"
  >,
  event: NewEvent,
): Promise<void> {
  const { id: sessionId, epoch } = session;
  await deps.store.db.transaction(async (tx) => {
    if (!(await lockRun(tx, sessionId, scope.runId))) return;
    const { runId } = scope;
    const location = { ref: branch, sessionId, epoch, step: input.step, runId };
    const isNew = await recordPublication(tx, { ...row, ...location });
    if (isNew) await appendEvents(tx, sessionId, epoch, [event]);
    if (isNew && row.reason !== undefined) await informModel(tx, sessionId, branch, row.reason);
  });
}

/** With the next step, so that the model can mend its commits; once, however often it is refused before. */
async function informModel(tx: Queryable, sessionId: string, branch: string, reason: string): Promise<void> {
  const notice = `[The work was not delivered to ${branch}: ${reason}. It is delivered again when the task is complete; if the reason is in the commits or in where they are, mend that.]`;
  const waiting = (await findSandbox(tx, sessionId))?.notice ?? "";
  if (!waiting.includes(notice)) await addNotice(tx, sessionId, notice);
}

const ASK_MS = 60_000;
const MAX_TITLE_CHARS = 72;
/** GitHub takes 65,536 characters. */
const MAX_TEXT_CHARS = 60_000;

export async function deliverPullRequest(delivery: Delivery): Promise<Publication> {
  const { branch, input } = delivery;
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
  const data = { url, number, created, state };
  const event = { type: "git:pull-request", step: input.step, data } as const;
  await record(delivery, { kind: "pull-request", commit, url, status: "done" }, event);
  return { outcome: "done", branch, commit, url, number };
}

async function wasOpened({ deps, session }: Delivery, url: string): Promise<boolean> {
  const rows = await listPublications(deps.store.db, session.id);
  return rows.some((row) => row.kind === "pull-request" && row.status === "done" && row.url === url);
}

/** The pull request that the session took over; undefined also if a person has another branch delivered. */
export const takenOver = ({ git, repository, branch }: Delivery): SessionGit["pull"] =>
  branch === repository.branch ? git.pull : undefined;

async function open(delivery: Delivery, commit: string) {
  const { deps, scope, session, git, repository, branch, input } = delivery;
  const access = accessOf(deps);
  const { signal } = scope;
  const { url } = repository;
  const ref = repository.ref ?? undefined;
  const forge = await findForge(url, git.forge, signal);
  if (forge === undefined) return refusal(noForge(url));
  const known = takenOver(delivery);
  // Its text and its state are others'.
  if (known !== undefined) return { ...known, created: false, isOwn: false, state: undefined };
  const remote = await lsRemote(access, url, [`refs/heads/${ref ?? branch}`], { signal, timeoutMs: ASK_MS });
  if ("trouble" in remote) return toRefusal(remote.trouble);
  // If the session started from a branch, the pull request is into it.
  const isBranch = ref !== undefined && ref !== branch && remote.refs.has(`refs/heads/${ref}`);
  const into = isBranch ? ref : remote.defaultBranch;
  if (into === undefined) return refusal("the remote has no default branch");
  // What it says in a round of following is about that round: the pull request is about all of the work.
  const besides = await roundSpans(deps.store.db, session.id, isRoundMessage);
  const { db } = deps.store;
  const answer = (await lastAnswer(db, session.id, besides)) ?? (await lastAnswer(db, session.id));
  const text = (answer?.content ?? []).map((part) => (part.type === "text" ? part.text : "")).join("");
  try {
    // The interface of github.com has another host than its repositories.
    return await openPullRequest(
      { forge, token: await access.tokenFor(url, signal), signal },
      {
        session: session.id,
        branch,
        commit,
        into,
        draft: input.draft === true,
        title: input.title ?? titleOf(session.task),
        body: [
          cutChars(text.trim(), MAX_TEXT_CHARS),
          ...(await verifiedPart(deps, session, { input, pushed: commit })),
          `Longhaul-Session: ${session.id}`,
        ].join("\n\n"),
      },
    );
  } catch (error) {
    if (!(error instanceof CredentialUnavailable || error instanceof ForgeRefusal)) throw error;
    const retryAfterMs = error instanceof ForgeRefusal ? error.retryAfterMs : undefined;
    return { refused: error.message, isPassing: error.isPassing, retryAfterMs };
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
