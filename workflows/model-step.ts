/** The loop's third part: one model step, and what its answer changes. */
import { CancellationScope } from "@temporalio/workflow";
import type { ModelStepFacts } from "../activities/contract/activities.ts";
import type { OwnLimit } from "../activities/contract/limits.ts";
import type { RunPolicy } from "../activities/contract/run-policy.ts";
import { applyStep, beginAnew } from "./agent-state.ts";
import { drain, putBack, applyDelivery, toIds } from "./inbox.ts";
import { askedModel, WRAP_UP_TEXT } from "./loop-policy.ts";
import { perform } from "./proxies.ts";
import { enterPhase, interruptible, optionsOf, showDetails, storeArrived, type Run } from "./run.ts";
import { openSandbox } from "./sandbox.ts";

/**
 * Asks for the next step, and applies its answer.
 * @param limit that the run has reached: the step is its last
 * @returns undefined if a person interrupted before there was an answer: the loop continues with the queue
 */
export async function askNextStep(
  run: Run,
  policy: RunPolicy,
  limit: OwnLimit | undefined,
): Promise<ModelStepFacts | undefined> {
  const answer = await askModel(run, limit);
  if (answer === undefined) {
    run.state.interrupting = false;
    return undefined;
  }
  // An interrupt that arrived together with the answer applies to the answer's calls.
  applyStep(run.state, answer);
  applyPolicy(run, policy, answer);
  showDetails(run);
  return answer;
}

/**
 * The step's answer may come with another policy. A request that another model refuses before it has answered anything must fit
 * its smaller window.
 */
function applyPolicy(run: Run, policy: RunPolicy, answer: ModelStepFacts): void {
  if (answer.policy === undefined) return;
  if (answer.kind === "overflow" && (answer.policy.model ?? policy.model) !== policy.model)
    run.state.occasion = "smaller";
  run.policy = { ...policy, ...answer.policy };
}

/** One model step, with all messages that arrived since the last one. */
async function askModel(run: Run, limit: OwnLimit | undefined): Promise<ModelStepFacts | undefined> {
  const { state } = run;
  enterPhase(run, "thinking");
  run.opening ??= openSandbox(run);
  await storeArrived(run);
  const drained = drain(state.inbox);
  if (drained.length > 0) beginAnew(state);
  const note = limit ? ({ kind: "wrap-up", text: WRAP_UP_TEXT[limit] } as const) : state.note;
  state.note = undefined;
  // A step boundary: the interrupted work is over, and the messages are drained.
  state.interrupting = false;
  const step = state.step + 1;
  const input = {
    step,
    round: state.compaction.round,
    results: state.results || undefined,
    guidance: toIds(drained),
    note,
    wrapUp: limit && true,
    again: state.answers.empty + state.answers.overflows > 0 ? (true as const) : undefined,
    takeTools: run.policy?.takesTools ? (true as const) : undefined,
    model: run.policy?.model,
    ...askedModel(state, run.policy),
  };
  const model = `${run.policy?.model ?? ""}${state.fallback ? " (fallback)" : ""}`;
  let answer: ModelStepFacts | undefined;
  try {
    answer = await interruptible(run, async () => {
      // Servers in the sandbox can list their tools once the sandbox is open.
      if (run.policy?.takesTools === "sandbox")
        await Promise.race([run.opening, CancellationScope.current().cancelRequested]);
      return perform("modelStep", optionsOf(run), `step ${step} · ${model}`, input);
    });
    return answer;
  } finally {
    // A step without an answer may have delivered its messages or not: the next one tells.
    if (answer === undefined) putBack(state.inbox, drained);
    else applyDelivery(state.inbox, drained, answer);
  }
}
