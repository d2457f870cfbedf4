/**
 * Writes how a question ended: its row, and the result of its call, in one transaction. The workflow has
 * already accepted the answer; this activity only stores it.
 *
 * Idempotency key: the question's row, which ends once. Side effects: rows, an event. Heartbeat: by timer. Retry class:
 * Postgres. Cancel: none needed, it is short.
 */
import { inScope, type ActivityScope } from "../runtime/activity-scope.ts";
import { cleanDeep } from "../text/clean.ts";
import { superseded } from "../contract/failures.ts";
import type { ToolCallPart } from "../contract/message.ts";
import type { SettledQuestion, Settlement, SettleQuestionInput } from "../contract/questions.ts";
import { standingVerdict } from "../tools/permissions/approval.ts";
import type { AgentDeps } from "../runtime/deps.ts";
import { enterSession } from "../runtime/enter-session.ts";
import { missingFacts, unlessMissing } from "../runtime/note-missing.ts";
import { findAskedCall, noSuchCall } from "../store/tool-calls.ts";
import { endedBefore, callHasEnded, giveResult } from "../step/call-result.ts";
import { openAgain } from "./ask-person.ts";
import { toClosing, resultFor, settledEvent } from "./settlement.ts";
import type { Queryable } from "../store/db.ts";
import type { NewEvent } from "../store/event.ts";
import { addRule, namesToAsk } from "../store/egress.ts";
import { appendEvents } from "../store/events.ts";
import {
  closeQuestion,
  findOpenQuestion,
  findQuestion,
  grant,
  openQuestions,
  setWaiting,
  type QuestionRow,
} from "../store/questions.ts";
import { addNotice, markClosed, PARKED } from "../store/sandboxes.ts";
import { lockRunAlone } from "../store/session-locks.ts";
import type { Session } from "../store/sessions.ts";

export function createSettleQuestion(deps: AgentDeps) {
  return (input: SettleQuestionInput): Promise<SettledQuestion> =>
    inScope(deps, (scope) =>
      unlessMissing<SettledQuestion>(deps, scope, input.step, {
        body: () => settle(deps, scope, input),
        missing: { kind: "result", facts: missingFacts(input) },
      }),
    );
}

async function settle(
  deps: AgentDeps,
  scope: ActivityScope,
  { id, settlement: given, ...about }: SettleQuestionInput,
): Promise<SettledQuestion> {
  const { step, index } = about;
  const { db } = deps.store;
  const session = await enterSession(deps, scope, { step, phase: "tools" });
  const settlement = cleanDeep(given, deps.sanitizer.clean) as Settlement;
  const settled = await db.transaction(async (tx): Promise<SettledQuestion> => {
    if (!(await lockRunAlone(tx, session.id, scope.runId))) throw superseded("the answer was dropped");
    const { row, call } = await findAskedCall(tx, session.id, { step, index });
    const question =
      (await findQuestion(tx, session.id, session.epoch, id)) ??
      // One that does not block may be of an older epoch.
      (await findOpenQuestion(tx, session.id, id)) ??
      // A restored database may lack it.
      (await openAgain(tx, scope, session, { input: about, row, call }));
    if (!question) throw noSuchCall(session.id, { step, index });
    const answered = { session, question, settlement, attempt: scope.attempt };
    if (question.kind === "egress") {
      await settleEgress(tx, answered);
      return { kind: "result", facts: await endedBefore(tx, row, call) };
    }
    // Its call has gone on: the answer is a message.
    if (!question.blocks && callHasEnded(row)) {
      await noteAnswer(tx, answered);
      await setWaiting(tx, session.id, false);
      return { kind: "noted", how: settlement.how };
    }
    if (callHasEnded(row)) return { kind: "result", facts: await endedBefore(tx, row, call) };
    // The call runs again and passes the answer to its server.
    if (question.kind === "mcp") {
      await noteAnswer(tx, answered);
      return { kind: "noted", how: settlement.how };
    }
    const result = resultFor(question, settlement);
    const isNew = await closeQuestion(tx, keyOf(session, question), toClosing(question, settlement));
    const events: NewEvent[] = isNew
      ? [{ ...settledEvent(question, settlement), step, attempt: scope.attempt }]
      : [];
    if (result === undefined) {
      if (isNew && settlement.how === "allowed" && settlement.always)
        await grantRule(tx, { session, call, step }, settlement.by);
      await setWaiting(tx, session.id, false);
      await appendEvents(tx, session.id, session.epoch, events);
      return { kind: "allowed" };
    }
    // The next call finds its sandbox closed, and opens it again on the same files, which nothing has changed.
    if (question.kind === "plan" && settlement.how === "allowed") await markClosed(tx, session.id, PARKED);
    await waitForOthers(tx, session);
    return { kind: "result", facts: await giveResult(tx, { session, row, call, events }, result) };
  });
  return settled;
}

const keyOf = (session: Session, { id, epoch }: QuestionRow) => ({ sessionId: session.id, epoch, id });

/** The session keeps waiting if another question is open. */
async function waitForOthers(tx: Queryable, { id }: Session): Promise<void> {
  if ((await openQuestions(tx, id)).length === 0) await setWaiting(tx, id, false);
}

interface Answered {
  readonly session: Session;
  readonly question: QuestionRow;
  readonly settlement: Settlement;
  readonly attempt: number;
}

/** Writes the row and the event of an answer that is not a call's result. @returns whether the question was open */
async function noteAnswer(
  tx: Queryable,
  { session, question, settlement, attempt }: Answered,
): Promise<boolean> {
  const isNew = await closeQuestion(tx, keyOf(session, question), toClosing(question, settlement));
  await waitForOthers(tx, session);
  if (isNew)
    await appendEvents(tx, session.id, session.epoch, [
      { ...settledEvent(question, settlement), step: question.step, attempt },
    ]);
  return isNew;
}

/** Opens names for the rest of the session. The call that asked already has its result, so a notice informs the model. */
async function settleEgress(tx: Queryable, answered: Answered): Promise<void> {
  if (!(await noteAnswer(tx, answered))) return;
  const { session, question, settlement } = answered;
  if (settlement.how !== "allowed" && settlement.how !== "denied") return;
  const names = await namesToAsk(tx, { ...keyOf(session, question), step: question.step });
  if (settlement.how === "allowed")
    for (const domain of names)
      await addRule(tx, { sessionId: session.id, domain, by: settlement.by ?? "person" });
  const comment = settlement.text === undefined ? "" : ` They wrote: ${settlement.text}`;
  const what =
    settlement.how === "allowed" ? "may be reached from now on: repeat what failed" : "stay closed";
  await addNotice(
    tx,
    session.id,
    `[A person was asked about the network: ${names.join(", ")} ${what}.${comment}]`,
  );
}

/** Grants the rule that asked for the rest of the session. */
async function grantRule(
  tx: Queryable,
  { session, call, step }: { readonly session: Session; readonly call: ToolCallPart; readonly step: number },
  by: string | undefined,
): Promise<void> {
  const verdict = await standingVerdict(tx, { session, call });
  if (verdict.action !== "ask") return;
  const { tool, match = null } = verdict.rule;
  await grant(tx, { sessionId: session.id, epoch: session.epoch, step }, { tool, match }, by);
}
