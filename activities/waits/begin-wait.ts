/**
 * Begins a wait that the model asks for: its end is fixed and stored. The wait itself is state of the workflow.
 *
 * Idempotency key: (session, epoch, call). Side effects: the wait's row, an event; for a call that cannot wait, its result. Heartbeat: by
 * timer. Retry class: Postgres. Cancel: none needed, it is short.
 */
import type { BeginWaitInput, BegunWait } from "../contract/waits.ts";
import { superseded } from "../contract/failures.ts";
import type { ToolCallPart } from "../contract/message.ts";
import { inScope, type ActivityScope } from "../runtime/activity-scope.ts";
import type { AgentDeps } from "../runtime/deps.ts";
import { enterSession } from "../runtime/enter-session.ts";
import { missingFacts, unlessMissing } from "../runtime/note-missing.ts";
import { callHasEnded, endedBefore, giveResult } from "../step/call-result.ts";
import type { Queryable } from "../store/db.ts";
import { appendEvents } from "../store/events.ts";
import { findQuestion, setWaiting } from "../store/questions.ts";
import { lockRunAlone } from "../store/session-locks.ts";
import type { Session } from "../store/sessions.ts";
import { findAskedCall, type LedgerRow } from "../store/tool-calls.ts";
import {
  backgroundStates,
  earlierWait,
  openWait,
  waitsOfStep,
  wasWarned,
  WARNED,
  type WaitKind,
  type WaitRow,
  type WaitTarget,
} from "../store/waits.ts";
import { oneLine } from "../tools/paths.ts";
import { readWait, wait, type WaitInput } from "../tools/wait.ts";
import { duration } from "../text/format.ts";
import { andMore, takeFirst } from "../text/lists.ts";
import { endedResult } from "./end-wait.ts";

export function createBeginWait(deps: AgentDeps) {
  return (input: BeginWaitInput): Promise<BegunWait> =>
    inScope(deps, (scope) =>
      unlessMissing<BegunWait>(deps, scope, input.step, {
        body: () => begin(deps, scope, input),
        missing: { kind: "settled", facts: missingFacts(input) },
      }),
    );
}

interface Beginning {
  readonly session: Session;
  readonly row: LedgerRow;
  readonly call: ToolCallPart;
  readonly input: BeginWaitInput;
}

async function begin(deps: AgentDeps, scope: ActivityScope, input: BeginWaitInput): Promise<BegunWait> {
  const { db } = deps.store;
  const session = await enterSession(deps, scope, { step: input.step, phase: "tools" });
  return db.transaction(async (tx): Promise<BegunWait> => {
    if (!(await lockRunAlone(tx, session.id, scope.runId))) throw superseded("the wait was not begun");
    const { row, call } = await findAskedCall(tx, session.id, input);
    const beginning = { session, row, call, input };
    if (callHasEnded(row)) return { kind: "settled", facts: await endedBefore(tx, row, call) };
    const callPlace = { sessionId: session.id, epoch: row.epoch, step: input.step };
    const waits = await waitsOfStep(tx, callPlace);
    const own = waits.find(({ callIndex, epoch }) => callIndex === input.index && epoch === row.epoch);
    if (own !== undefined) return toBegun(own);
    const parsed = wait.input.parse(call.input) as WaitInput;
    const request = { ...parsed, call: row.callId };
    const isSecond = waits.some(({ callIndex }) => callIndex !== input.index);
    const refusal = isSecond
      ? "Not waited: a step has one wait, and this one has another. Wait again in the next step."
      : await refusalOf(tx, beginning, request);
    if (refusal !== undefined) return settled(tx, beginning, refusal);
    const there = await isThere(tx, beginning, request);
    if (there !== undefined) return { kind: "settled", facts: there };
    return store(tx, beginning, request, await earlierWait(tx, callPlace, row.callId));
  });
}

type Asked = WaitInput & { readonly call: string };

async function settled(tx: Queryable, { session, row, call }: Beginning, text: string): Promise<BegunWait> {
  const facts = await giveResult(tx, { session, row, call, events: [] }, { outcome: "error", text });
  return { kind: "settled", facts };
}

const toBegun = ({ startedAt, until, kind, target }: WaitRow): BegunWait => ({
  kind: "waits",
  startedAtMs: startedAt.getTime(),
  untilMs: until?.getTime(),
  forProcess: kind === "process" ? true : undefined,
  question: (target as WaitTarget | null)?.question,
});

/** Why the call cannot wait; undefined if it can. */
async function refusalOf(
  tx: Queryable,
  { session, row, input }: Beginning,
  request: Asked,
): Promise<string | undefined> {
  const { maxWait, maxWaits } = session.config.limits;
  if (input.waits >= maxWaits)
    return `Not waited: this run has waited ${maxWaits} times, as often as it may (limits.maxWaits). Work on, or end with what there is.`;
  const read = readWait(request, { nowMs: input.nowMs, maxWaitMs: maxWait });
  if (!read.ok) return read.why;
  const states = await backgroundStates(tx, session.id);
  const running = [...states].flatMap(([id, state]) => (state === "running" ? [id] : []));
  const unknown = (request.process ?? []).find((id) => !states.has(id));
  if (unknown !== undefined)
    return `Not waited: no command in the background has the id "${oneLine(unknown, 60)}". ${running.length === 0 ? "None runs." : `Running: ${named(running)}.`}`;
  if (request.question !== undefined) {
    const question = await findQuestion(tx, session.id, session.epoch, request.question);
    if (question === undefined)
      return `Not waited: there is no question "${oneLine(request.question, 60)}". Ask one with ask_user and block: false.`;
  }
  const { parkAfter } = session.config.questions;
  const isLong = read.untilMs === undefined || read.untilMs - input.nowMs > parkAfter;
  if (!isLong || request.process !== undefined || running.length === 0) return undefined;
  if (await wasWarned(tx, session.id)) return undefined;
  const target: WaitTarget = { call: row.callId };
  const at = new Date(input.nowMs);
  await openWait(tx, { ...placeOf(row), kind: "time", target, startedAt: at, endedAt: at, how: WARNED });
  return `Not waited yet: after ${duration(parkAfter)} the sandbox is saved and stopped, and these commands would be lost: ${named(running)}. Wait with process for their end, or call wait again to let them go.`;
}

function named(ids: readonly string[]): string {
  const { shown, more } = takeFirst(ids, 20);
  return `${shown.join(", ")}${andMore(more)}`;
}

const placeOf = ({ sessionId, epoch, step, index: callIndex }: LedgerRow) => ({
  sessionId,
  epoch,
  step,
  callIndex,
});

/** What it waits for has come already. @returns the call's facts; undefined if it has not */
async function isThere(tx: Queryable, { session, row, call }: Beginning, request: Asked) {
  const states = await backgroundStates(tx, session.id);
  const over = request.process?.filter((id) => states.get(id) !== "running") ?? [];
  const question =
    request.question === undefined
      ? undefined
      : await findQuestion(tx, session.id, session.epoch, request.question);
  if (over.length === 0 && (question === undefined || question.status === "open")) return undefined;
  const text =
    over.length > 0
      ? await endedResult(tx, session.id, "Not waited", over)
      : `Not waited: the question ${question?.id} is settled (${question?.status}); its answer came as a message.`;
  return giveResult(tx, { session, row, call, events: [] }, { outcome: "completed", text });
}

const dateOf = (ms: number | undefined): Date | null => (ms === undefined ? null : new Date(ms));

function kindOf({ process, question }: Asked): WaitKind {
  if (process !== undefined) return "process";
  return question === undefined ? "time" : "question";
}

async function store(
  tx: Queryable,
  { session, row, input }: Beginning,
  request: Asked,
  earlier: WaitRow | undefined,
): Promise<BegunWait> {
  const read = readWait(request, { nowMs: input.nowMs, maxWaitMs: session.config.limits.maxWait });
  const kind = kindOf(request);
  const untilMs = read.ok ? read.untilMs : undefined;
  const until = earlier === undefined ? dateOf(untilMs) : earlier.until;
  const startedAt = earlier?.startedAt ?? new Date(input.nowMs);
  const target: WaitTarget = {
    call: request.call,
    processes: request.process,
    question: request.question,
  };
  const { reason } = request;
  await openWait(tx, { ...placeOf(row), kind, target, startedAt, until, reason });
  await setWaiting(tx, session.id, true);
  const data = {
    for: kind,
    until: until?.toISOString() ?? null,
    reason,
    targets: [...(request.process ?? []), ...(request.question === undefined ? [] : [request.question])],
  };
  await appendEvents(tx, session.id, session.epoch, [{ type: "wait:started", step: input.step, data }]);
  return {
    kind: "waits",
    startedAtMs: startedAt.getTime(),
    untilMs: until?.getTime(),
    forProcess: kind === "process" ? true : undefined,
    question: request.question,
  };
}
