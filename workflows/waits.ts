/**
 * Waits that the model asks for: state of the run, never an activity. What begins and ends one are two short activities around it; a
 * look at a background command, and the parking of the sandbox, are activities between whose attempts the server keeps the time.
 */
import { CancellationScope, condition } from "@temporalio/workflow";
import type { CallFacts } from "../activities/contract/activities.ts";
import type { RunToolInput, ToolFacts } from "../activities/contract/calls.ts";
import type { BegunWait, WaitEnd } from "../activities/contract/waits.ts";
import { earlyEnd, lasted, MovesOn, type OpenWait } from "./asking.ts";
import { waitingIds } from "./inbox.ts";
import { wasStopped } from "./outcome.ts";
import { titled } from "./presentation.ts";
import { perform } from "./proxies.ts";
import { announceStop, enterPhase, optionsOf, setSearchAttributes, showDetails, type Run } from "./run.ts";
import { hasNewVersion } from "./versions.ts";

/**
 * Waits, in a call of `wait`.
 * @returns the call's facts
 * @throws MovesOn if the run continues on another version of the workers, and waits on there until the same end
 */
export async function waitAsAsked(run: Run, call: CallFacts, input: RunToolInput): Promise<ToolFacts> {
  const { step, index } = input;
  const { state } = run;
  const begun = await perform("beginWait", optionsOf(run), titled(`step ${step} · waits`, call), {
    step,
    index,
    nowMs: Date.now(),
    waits: state.waits,
  });
  if (begun.kind === "settled") return begun.facts;
  const wait = openWait(call, withDefault(run, begun));
  const how = await restUntilOver(run, wait, input);
  state.waits += 1;
  const nowMs = Date.now();
  const summary = titled(`step ${step} · waited ${lasted(nowMs - wait.startedAtMs)}: ${how}`, call);
  return CancellationScope.nonCancellable(() =>
    perform("endWait", optionsOf(run), summary, { step, index, how, nowMs }),
  );
}

type Waits = Extract<BegunWait, { readonly kind: "waits" }>;

/** A wait for a question ends when its default is used, which the next step is told as the answer. */
function withDefault({ state }: Run, begun: Waits): Waits {
  const { askedAtMs = 0, expiresInMs } = state.later.find(({ id }) => id === begun.question) ?? {};
  if (expiresInMs === undefined) return begun;
  return { ...begun, untilMs: Math.min(begun.untilMs ?? Infinity, askedAtMs + expiresInMs) };
}

const openWait = ({ about }: CallFacts, { startedAtMs, untilMs, forProcess, question }: Waits): OpenWait => {
  const other = question === undefined ? "time" : "person";
  return { about, startedAtMs, untilMs, waitsFor: forProcess === true ? "process" : other, ends: {} };
};

async function restUntilOver(run: Run, wait: OpenWait, input: RunToolInput): Promise<WaitEnd> {
  const { state } = run;
  const { phase } = state;
  run.wait = wait;
  run.status = "waiting";
  enterPhase(run, "waiting");
  if (run.policy?.searchAttributes) setSearchAttributes(run, "waiting");
  const scope = new CancellationScope();
  const meanwhile = scope.run(() => watchOrPark(run, wait, input)).catch(() => undefined);
  try {
    return await untilOver(run, wait);
  } finally {
    scope.cancel();
    announceStop();
    await meanwhile;
    run.wait = undefined;
    run.status = "active";
    enterPhase(run, phase);
    if (run.policy?.searchAttributes) setSearchAttributes(run, "active");
  }
}

async function untilOver(run: Run, wait: OpenWait): Promise<WaitEnd> {
  const { state } = run;
  const moves = () => hasNewVersion(state.leftVersion);
  const early = () => earlyEnd(waitingIds(state.inbox), wait);
  const isOver = () => early() !== undefined || moves();
  try {
    if (wait.untilMs === undefined) await condition(isOver);
    else if (wait.untilMs > Date.now()) await condition(isOver, wait.untilMs - Date.now());
  } catch (error) {
    // A cancelled run closes its calls and its wait by itself.
    if (!wasStopped(error) || !state.interrupting) throw error;
    return state.deadline === undefined ? "interrupted" : "deadline";
  }
  const end = early();
  if (end !== undefined) return end;
  if (wait.untilMs !== undefined && wait.untilMs <= Date.now()) return "time";
  throw new MovesOn();
}

/** A failure changes nothing of a wait with an end: the session waits nevertheless. */
async function watchOrPark(run: Run, wait: OpenWait, { step, index }: RunToolInput): Promise<void> {
  if (wait.waitsFor === "process") {
    await perform("watchSandbox", optionsOf(run), `step ${step} · looks for its end`, { step, index }).catch(
      (error: unknown) => {
        if (wasStopped(error)) throw error;
      },
    );
    wait.ends.process = true;
    return;
  }
  await parkUntil(run, step, wait.untilMs);
}

/** Parks the sandbox when the session has waited for long, if it waits that long. @param untilMs undefined: until a person ends it */
async function parkUntil(run: Run, step: number, untilMs: number | undefined): Promise<void> {
  const afterMs = run.policy?.parkAfterMs;
  if (afterMs === undefined || run.state.sandbox === undefined) return;
  if (untilMs !== undefined && untilMs - Date.now() <= afterMs) return;
  const summary = `step ${step} · park the sandbox after ${lasted(afterMs)}`;
  await perform("parkSandbox", optionsOf(run), summary, { step, afterMs });
  // The next call, or the next step, opens it again.
  run.state.sandbox = undefined;
  run.opening = undefined;
  showDetails(run);
}

/** Waits for a person's answer or message. @param untilMs when the first default is used */
export async function restForAnswers(run: Run, untilMs: number | undefined): Promise<WaitEnd> {
  const { step } = run.state;
  const wait: OpenWait = { about: "", startedAtMs: Date.now(), untilMs, waitsFor: "person", ends: {} };
  return restUntilOver(run, wait, { step, index: 0 });
}

/** Runs `body`, a wait until `untilMs` between two steps, and gives the sandbox up meanwhile if that is long. */
export async function parkingDuring<T>(run: Run, untilMs: number, body: () => Promise<T>): Promise<T> {
  const scope = new CancellationScope();
  const parking = scope.run(() => parkUntil(run, run.state.step, untilMs)).catch(() => undefined);
  try {
    return await body();
  } finally {
    scope.cancel();
    await parking;
  }
}

/** Ends the wait at a person's word, without a message. @returns false if the run does not wait */
export function wake({ wait }: Run): boolean {
  if (wait === undefined) return false;
  wait.ends.woken = true;
  return true;
}
