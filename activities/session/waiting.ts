/** A session that waits for people: how it is marked, and how the operator is told. */
import type { OpenBudget } from "../contract/limits.ts";
import { inScope, type ActivityScope } from "../runtime/activity-scope.ts";
import type { AgentDeps } from "../runtime/deps.ts";
import { enterSession } from "../runtime/enter-session.ts";
import { openQuestions, setWaiting, findQuestion, type QuestionOption } from "../store/questions.ts";
import { lockRunAlone } from "../store/session-locks.ts";
import { type Session, findSession } from "../store/sessions.ts";
import { openBudget } from "../step/budget.ts";
import type { NotifyInput } from "../contract/questions.ts";

/**
 * Marks a session as waiting for answers only, which every list of sessions shows.
 *
 * Idempotency key: the session's status. Side effects: that. Heartbeat: by timer. Retry class: Postgres. Cancel: none needed.
 */
export function createMarkWaiting(deps: AgentDeps) {
  return (input: Waiting): Promise<void> =>
    inScope(deps, async (scope) => void (await enterWaiting(deps, scope, input)));
}

interface Waiting {
  readonly step: number;
  /** A question about a limit is open: the session waits before the step that exceeds the limit. */
  readonly budget?: OpenBudget;
}

/**
 * As `enterSession`. Afterwards lists show the session as waiting, and its question about a limit is open: also if the run was
 * reset and this is its first activity.
 */
export async function enterWaiting(
  deps: AgentDeps,
  scope: ActivityScope,
  { step, budget }: Waiting,
): Promise<Session> {
  const session = await enterSession(
    deps,
    scope,
    budget === undefined
      ? { step, phase: "tools" }
      : { step: budget.step, phase: "model", round: budget.round },
  );
  const { id } = session;
  await deps.store.db.transaction(async (tx) => {
    if (!(await lockRunAlone(tx, id, scope.runId))) return;
    if (budget !== undefined) await openBudget(tx, session, budget);
    if ((await openQuestions(tx, id)).length > 0) await setWaiting(tx, id, true);
  });
  return session;
}

/**
 * Sends a notice to the operator's address: a person is asked, or a session has ended.
 *
 * Idempotency key: sent with each notice, since it may come more than once. Side effects: the request. Heartbeat: by timer.
 * Retry class: no answer, or a status that may pass. Cancel: the request is aborted.
 */
export function createNotify(deps: AgentDeps) {
  return (input: NotifyInput): Promise<void> =>
    inScope(deps, async (scope) => {
      const { notices } = deps;
      const { db } = deps.store;
      const session = await findSession(db, scope.sessionId);
      // Another worker, with other settings, has started this run.
      if (notices === undefined || session === undefined) return;
      const { event, question } = input;
      const row =
        question === undefined ? undefined : await findQuestion(db, session.id, session.epoch, question);
      if (event === "question:asked" && row?.status !== "open") return;
      const text = row?.text ?? session.task;
      const options = row?.options as readonly QuestionOption[] | null | undefined;
      await notices.send(
        {
          id: [session.id, event, question ?? scope.runId, session.epoch].join(":"),
          event,
          session: session.id,
          question: row?.id ?? null,
          kind: row?.kind ?? null,
          status: event === "session:ended" ? session.status : null,
          command:
            row === undefined ? `longhaul status ${session.id}` : `longhaul answer ${session.id} ${row.id}`,
          ...(notices.withContent
            ? { text: deps.sanitizer.clean(text), options: options?.map(({ label }) => label) ?? null }
            : {}),
        },
        scope.signal,
      );
    });
}
