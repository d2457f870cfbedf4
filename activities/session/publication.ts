/** What a push and a pull request share: their input, and how their outcome is recorded; and the pull request itself. */
import type { ActivityScope } from "../runtime/activity-scope.ts";
import { type SessionGit } from "../config/git-settings.ts";
import { shorten } from "../text/cut.ts";
import type { Publication, PublishInput } from "../contract/delivery.ts";
import { fatal, retryable } from "../contract/failures.ts";
import { type AgentDeps } from "../runtime/deps.ts";
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

/** The pull request that the session took over; undefined also if a person has another branch delivered. */
export const takenOver = ({ git, repository, branch }: Delivery): SessionGit["pull"] =>
  branch === repository.branch ? git.pull : undefined;
