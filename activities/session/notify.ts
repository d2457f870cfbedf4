/**
 * Sends a notice to the operator's address: a person is asked, or a session has ended.
 *
 * Idempotency key: sent with each notice, since it may come more than once. Side effects: the request. Heartbeat: by timer.
 * Retry class: no answer, or a status that may pass. Cancel: the request is aborted.
 */
import { inScope } from "../runtime/activity-scope.ts";
import type { NotifyInput } from "../contract/questions.ts";
import type { AgentDeps } from "../runtime/deps.ts";
import { findQuestion, type QuestionOption } from "../store/questions.ts";
import { findSession } from "../store/sessions.ts";

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
