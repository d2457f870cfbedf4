/** Performs the calls of a step. */
import { hasMovedOn, LOOP_WARNING_TEXT, stuckVerdict } from "./stuck.ts";
import type { RunToolInput, ToolFacts } from "../activities/contract/calls.ts";
import { ActivityFailure, ApplicationFailure, CancellationScope } from "@temporalio/workflow";
import type { CallFacts } from "../activities/contract/activities.ts";
import { enterPhase, interruptible, showDetails, type Run } from "./run.ts";
import { openSandbox, performOnHost } from "./sandbox.ts";
import { applyToolResult } from "./agent-state.ts";
import { delegateTask } from "./delegates.ts";
import { askedModel, callGroups } from "./loop-policy.ts";
import { titled } from "./presentation.ts";
import { waitAsAsked } from "./waits.ts";
import type { WaitingCall } from "./asking.ts";
import { askAbout, askForServer, restingDuring } from "./questions.ts";

/**
 * Performs all calls of a step, in parallel where allowed; returns when each has its result.
 * @param remaining calls without a result; finished calls are removed, so that the rest remains in the list if this throws
 * @returns true if the agent is permanently stuck
 * @throws MovesOn if the run waits only for people, and continues on another version of the workers
 */
export async function runTools(run: Run, remaining: WaitingCall[]): Promise<boolean> {
  const { state } = run;
  const waiting = [...remaining];
  const finish = (entry: WaitingCall) => void remaining.splice(remaining.indexOf(entry), 1);
  // A wait begins when the step's other calls have ended.
  const calls = waiting
    .filter(({ about }) => about === undefined)
    .toSorted((left, right) => Number(left.call.by === "wait") - Number(right.call.by === "wait"));
  let refused = waiting.find(({ about }) => about !== undefined);
  enterPhase(run, "running tools");
  const { step } = state;
  const { fallback } = askedModel(state, run.policy);
  const modelInput = fallback === undefined ? {} : { fallback };
  await interruptible(run, async () => {
    const scope = CancellationScope.current();
    if (state.interrupting) scope.cancel();
    // Opening the sandbox may take minutes: a person who interrupts does not wait for it.
    await Promise.race([run.opening, scope.cancelRequested]);
    await withRests(run, waiting, async () => {
      for (const group of callGroups(calls.map(({ call }) => call))) {
        run.asking.busy = group.length;
        const results = await Promise.allSettled(
          group.map(async ([call, position]) => {
            const entry = calls[position] ?? { call, index: position };
            const { index } = entry;
            try {
              const facts = await performCall(run, entry, { step, index, ...modelInput });
              applyToolResult(state, call, facts);
              if (facts.asksForDomains === true) refused ??= { call, index, about: "egress" };
              finish(entry);
            } finally {
              run.asking.busy -= 1;
            }
            showDetails(run);
          }),
        );
        const failure = results.find((result) => result.status === "rejected");
        if (failure) throw failure.reason;
      }
      if (refused === undefined) return;
      if (!remaining.includes(refused)) remaining.push(refused);
      await askForDomains(run, refused, { step, index: refused.index });
    });
  });
  state.interrupting = false;
  return isStuck(run);
}

/** Warns the model once about repeated calls. @returns true if it goes on repeating them */
function isStuck({ state }: Run): boolean {
  const { repetition } = state;
  const verdict = stuckVerdict(repetition.calls, repetition.isWarned);
  if (verdict === "warn") {
    state.note = { kind: "warning", text: LOOP_WARNING_TEXT };
    Object.assign(repetition, { calls: [], isWarned: true });
  } else if (hasMovedOn(repetition.calls)) repetition.isWarned = false;
  return verdict === "stop";
}

/** Performs all calls. The run rests when all remaining calls wait for a person. */
async function withRests<T>(run: Run, calls: readonly WaitingCall[], perform: () => Promise<T>): Promise<T> {
  const mayAsk = run.policy?.asks.forDomains === true || run.policy?.asks.forServers === true;
  if (!mayAsk && !calls.some(({ call }) => asksPerson(call))) return perform();
  return restingDuring(run, perform);
}

const asksPerson = ({ by, needsApproval }: CallFacts) => by === "person" || needsApproval === true;

/** When all calls have their results: one question about the domains they were refused. An answer applies from the next command on. */
async function askForDomains(run: Run, waiting: WaitingCall, input: RunToolInput): Promise<void> {
  run.asking.busy += 1;
  try {
    await askAbout(run, waiting, { ...input, about: "egress" });
  } finally {
    run.asking.busy -= 1;
  }
}

/** One call, by tool, person or delegate. */
async function performCall(run: Run, waiting: WaitingCall, input: RunToolInput): Promise<ToolFacts> {
  const { call } = waiting;
  let { asked } = waiting;
  let asks = asksPerson(call) || asked !== undefined;
  for (;;) {
    const settled = asks ? await askAbout(run, { call, asked }, input) : undefined;
    asked = undefined;
    if (settled) return settled;
    if (asks) await (run.opening ??= openSandbox(run));
    const facts = await runTool(run, call, input);
    const { serverAsks } = facts;
    if (serverAsks === undefined && facts.needsApproval !== true) return facts;
    if (serverAsks) {
      await askForServer(run, call, input, serverAsks);
      await (run.opening ??= openSandbox(run));
    }
    // The call is no longer allowed: the run was reset, or its rules have changed.
    asks = serverAsks === undefined;
  }
}

/** One call by its tool, or by a session of its own. */
async function runTool(run: Run, call: CallFacts, input: RunToolInput): Promise<ToolFacts> {
  if (call.by === "delegate") return delegateTask(run, call, input);
  if (call.by === "wait") return waitAsAsked(run, call, input);
  const summary = titled(`step ${input.step} · ${call.name}`, call);
  const result: unknown = await performOnHost(run, "runTool", summary, input).catch((error: unknown) => {
    if (isForeign(error)) return undefined;
    throw error;
  });
  if (isToolFacts(result)) return result;
  // Its activity was completed or failed by hand: the model is told that the outcome is not known.
  return performOnHost(run, "runTool", `${summary} · not known`, { ...input, isLost: true });
}

const isToolFacts = (facts: unknown): facts is ToolFacts => {
  const { outcome, tokens, hash } = (facts ?? {}) as Partial<ToolFacts>;
  return typeof outcome === "string" && typeof tokens === "number" && typeof hash === "string";
};

/** None of our failures is without a type. */
function isForeign(error: unknown): boolean {
  if (!(error instanceof ActivityFailure) || error.retryState === "CANCEL_REQUESTED") return false;
  return error.cause instanceof ApplicationFailure && !error.cause.type;
}
