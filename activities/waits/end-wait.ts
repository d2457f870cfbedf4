/**
 * Ends a wait: the model is told what ended it, how long it took, and how the commands that it waited for ended.
 *
 * Idempotency key: the call's result, and the wait's row, which ends once. Side effects: rows, an event. Heartbeat: by timer. Retry
 * class: Postgres. Cancel: none needed, it is short.
 */
import { ApplicationFailure, ApplicationFailureCategory } from "@temporalio/common";
import type { ToolFacts } from "../contract/calls.ts";
import type { ToolCallPart, ToolOutcome } from "../contract/message.ts";
import type { EndWaitInput, WaitEnd } from "../contract/waits.ts";
import { superseded, type FailureType } from "../contract/failures.ts";
import { TRIES } from "../contract/tries.ts";
import { inScope, type ActivityScope } from "../runtime/activity-scope.ts";
import type { AgentDeps } from "../runtime/deps.ts";
import { enterSession } from "../runtime/enter-session.ts";
import { missingFacts, unlessMissing } from "../runtime/note-missing.ts";
import { callHasEnded, endedBefore, giveResult } from "../step/call-result.ts";
import type { Queryable } from "../store/db.ts";
import { appendEvents } from "../store/events.ts";
import { openQuestions, setWaiting } from "../store/questions.ts";
import { lockRunAlone } from "../store/session-locks.ts";
import { findAskedCall } from "../store/tool-calls.ts";
import { backgroundStates, closeWait, waitsOfStep, type WaitRow, type WaitTarget } from "../store/waits.ts";
import { duration } from "../text/format.ts";
import { readWait, wait, type WaitInput } from "../tools/wait.ts";
import { lookAtCommands, takeEndSentences } from "../workspace/background-commands.ts";
import { withoutLost, type SessionSandboxes } from "../workspace/session-sandbox.ts";

export function createEndWait(deps: AgentDeps) {
  return (input: EndWaitInput): Promise<ToolFacts> =>
    inScope(deps, (scope) =>
      unlessMissing(deps, scope, input.step, {
        body: () => end(deps, scope, input),
        missing: missingFacts(input),
      }),
    );
}

async function end(deps: AgentDeps, scope: ActivityScope, input: EndWaitInput): Promise<ToolFacts> {
  const { step, index, how, nowMs } = input;
  const session = await enterSession(deps, scope, { step, phase: "tools" });
  return deps.store.db.transaction(async (tx) => {
    if (!(await lockRunAlone(tx, session.id, scope.runId))) throw superseded("the wait's end was dropped");
    const { row, call } = await findAskedCall(tx, session.id, { step, index });
    if (callHasEnded(row)) return endedBefore(tx, row, call);
    const callPlace = { sessionId: session.id, epoch: row.epoch, step, index };
    const own = (await waitsOfStep(tx, callPlace)).find(({ callIndex }) => callIndex === index);
    const ms = Math.max(0, nowMs - (own?.startedAt.getTime() ?? nowMs));
    const isNew = await closeWait(tx, callPlace, { endedAt: new Date(nowMs), how });
    if ((await openQuestions(tx, session.id)).length === 0) await setWaiting(tx, session.id, false);
    const { processes = [] } = (own?.target as WaitTarget | null | undefined) ?? {};
    const plannedMs = own?.until ? own.until.getTime() - own.startedAt.getTime() : undefined;
    const waited =
      how === "time" || plannedMs === undefined ? duration(ms) : `${duration(ms)} of ${duration(plannedMs)}`;
    const text =
      how === "process"
        ? await endedResult(tx, session.id, `Waited ${waited}`, processes)
        : `Waited ${waited}: ${ENDS[how]}${how === "time" ? raisedText(call, own) : ""}`;
    const events = isNew ? [{ type: "wait:ended" as const, step, data: { how, ms } }] : [];
    if (events.length > 0) await appendEvents(tx, session.id, session.epoch, events);
    return giveResult(tx, { session, row, call, events: [] }, { outcome: outcomeOf(how), text });
  });
}

/** A wait that was shorter than any may be was raised, which its result says. */
function raisedText({ input }: ToolCallPart, own: WaitRow | undefined): string {
  const parsed = wait.input.safeParse(input).data as WaitInput | undefined;
  if (parsed === undefined || own === undefined) return "";
  const read = readWait(parsed, { nowMs: own.startedAt.getTime(), maxWaitMs: Infinity });
  return read.ok && read.remark !== undefined ? ` ${read.remark}` : "";
}

const outcomeOf = (how: WaitEnd): ToolOutcome =>
  how === "interrupted" || how === "cancelled" ? "interrupted" : "completed";

const ENDS: Readonly<Record<Exclude<WaitEnd, "process">, string>> = {
  time: "the time is over.",
  message: "a person wrote a message, which follows.",
  answer: "a person answered a question; the answer follows.",
  woken: "a person ended the wait.",
  interrupted: "a person stopped it.",
  cancelled: "the run was cancelled.",
  deadline: "the run's deadline is near.",
};

/** How commands ended that a wait is for, told here and then nowhere else. */
export async function endedResult(
  tx: Queryable,
  sessionId: string,
  before: string,
  processes: readonly string[],
): Promise<string> {
  const sentences = await takeEndSentences(tx, sessionId, processes);
  return `${before}: ${sentences.length === 0 ? `${processes.join(", ")} had ended before.` : sentences.join("\n")}`;
}

/** Chosen: the end of a short wait is seen within 1 s, and of one of up to an hour within 10 s. */
const LEAST_MS = 1_000;
const HOUR_MOST_MS = 10_000;
const SHARE = 1 / 20;
/** Chosen: nobody misses a minute of a wait of hours, and each look is an action that a Temporal server bills. */
const MOST_MS = 60_000;
/** With it, looks are ten seconds apart for the first hour. */
const LONG_SHARE = 1 / 360;

/** How long after a look at a command the next one is, in ms: a share of the time that it is waited for so far, within bounds. */
export function untilNextLookMs(waitedMs: number): number {
  const within = (mostMs: number, share: number) => Math.min(mostMs, waitedMs * share);
  return Math.round(Math.max(LEAST_MS, within(HOUR_MOST_MS, SHARE), within(MOST_MS, LONG_SHARE)));
}

/**
 * Looks once whether a command in the background that a wait is for has ended, and is request again later if not: Temporal's server keeps
 * the time, so no slot and no timer is used meanwhile.
 *
 * Idempotency key: the commands' rows. Side effects: those, events. Heartbeat: by timer. Retry class: `NotYetDue` (benign), engine,
 * Postgres. Cancel: between looks it ends at once.
 */
export function createWatchSandbox(deps: AgentDeps, sandboxes: SessionSandboxes) {
  return ({ step, index }: { readonly step: number; readonly index: number }): Promise<void> =>
    inScope(
      deps,
      async (scope) => {
        const session = await enterSession(deps, scope, { step, phase: "tools" });
        const { db } = deps.store;
        const callPlace = { sessionId: session.id, epoch: session.epoch, step };
        const wait = (await waitsOfStep(db, callPlace)).find(({ callIndex }) => callIndex === index);
        const { processes = [] } = (wait?.target as WaitTarget | null | undefined) ?? {};
        await withoutLost(sandboxes, session.id, async () => {
          // One that was lost is opened again; its commands are gone then, which the look sees.
          const { sandbox } = await sandboxes.open(session, step, scope.signal);
          await lookAtCommands(deps, session, step, sandbox);
        });
        const states = await backgroundStates(db, session.id);
        if (wait?.endedAt || processes.some((id) => states.get(id) !== "running")) return;
        if (scope.signal.aborted) return scope.stopped();
        scope.waited();
        throw notYet(untilNextLookMs(scope.sinceAskedMs));
      },
      TRIES.away,
    );
}

function notYet(afterMs: number): ApplicationFailure {
  return ApplicationFailure.create({
    type: "NotYetDue" satisfies FailureType,
    message: "No error: the session waits for a command in the background, which still runs.",
    nextRetryDelay: afterMs,
    category: ApplicationFailureCategory.BENIGN,
  });
}
