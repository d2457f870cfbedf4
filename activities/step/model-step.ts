/**
 * One model step: drain guidance, build the request, ask, store the answer, return facts.
 *
 * Idempotency key: (session, live epoch, step): a stored answer is found before anything is sent, so a crash after the
 * write costs no second call. Side effects: messages, ledger rows, a bill, events. Heartbeat: by timer. Retry class:
 * providers' 408/409/429/5xx, silence and network errors are retried after the time they ask for; refusals are final.
 * Cancel: the request is aborted, what was said is kept with ` [interrupted]`, and `interrupted` is returned.
 */
import { type Prefix, prefixOf, prefixShares } from "../context/request.ts";
import { fallbackOf } from "../config/asked-model.ts";
import { budgetOf } from "../config/budget.ts";
import type { ModelStepFacts, ModelStepInput } from "../contract/activities.ts";
import { type ActivityScope, inScope } from "../runtime/activity-scope.ts";
import type { AgentDeps } from "../runtime/deps.ts";
import { enterSession } from "../runtime/enter-session.ts";
import { holdToModels } from "../runtime/hold-to-policy.ts";
import { appendChunks } from "../store/events.ts";
import type { Session } from "../store/sessions.ts";
import { withAskedModel } from "./step-context.ts";
import { withChangedTools, takeServerTools } from "./catalogues.ts";
import { ChunkBatch } from "./chunk-writer.ts";
import { deliverGuidance } from "./deliver-guidance.ts";
import { currentDelegateLimit } from "./budget.ts";
import { takeStep } from "./take-step.ts";

/** Attempts of one step, two minutes apart at most, so that a step outlasts an outage of an hour. */
const MODEL_ATTEMPTS = 30;

export function createModelStep(deps: AgentDeps) {
  const batch = new ChunkBatch((answers) => appendChunks(deps.store, answers));
  return (input: ModelStepInput): Promise<ModelStepFacts> =>
    inScope(deps, (scope) => modelStep(deps, batch, scope, input), MODEL_ATTEMPTS);
}

async function modelStep(
  deps: AgentDeps,
  batch: ChunkBatch,
  scope: ActivityScope,
  input: ModelStepInput,
): Promise<ModelStepFacts> {
  const entered = await enterSession(deps, scope, {
    step: input.step,
    phase: "model",
    ...(input.round === undefined ? {} : { round: input.round }),
  });
  holdToModels(deps, entered);
  const fallback = fallbackOf(entered.config, input);
  const asked = await withAskedModel(deps, entered, fallback);
  const current = await withChangedTools(deps, asked, input);
  const session = input.takeTools ? await takeServerTools(deps, scope, current, input.step) : current;
  const prefix = prefixOf(session, deps.tools);
  const budget = budgetOf(session.config, prefix.tokens);
  // One step takes as much of a person's messages as compaction keeps verbatim.
  const parked = await deliverGuidance(deps, scope, session, {
    input,
    roomTokens: budget.userTokens,
  });
  const outcome = await takeStep({ deps, scope, session, input }, { prefix, budget, batch });
  const servedWindow =
    outcome.kind === "overflow" || outcome.kind === "answered" ? outcome.servedWindow : undefined;
  const isNews = input.takeTools === true || current !== asked || servedWindow !== undefined;
  const policy = {
    ...(await currentDelegateLimit(deps, session)),
    ...(isNews || isOtherModel(session, input) ? figuresOf(session, prefix, servedWindow) : {}),
    ...(input.takeTools ? { takesTools: false as const } : {}),
  };
  return {
    ...outcome,
    ...(parked > 0 ? { parked } : {}),
    ...(fallback === input.fallback ? {} : { isOwn: true as const }),
    ...(Object.keys(policy).length === 0 ? {} : { policy }),
  };
}

const isOtherModel = ({ config }: Session, { model }: ModelStepInput): boolean =>
  model !== undefined && model !== config.model;

/** What the run decides by from now on. @param servedWindow the window that the model's server has named in this step */
function figuresOf({ config, tokenRatio }: Session, prefix: Prefix, servedWindow: number | undefined) {
  return {
    model: config.model,
    budget: budgetOf(config, prefix.tokens, servedWindow),
    prefix: prefixShares(prefix, tokenRatio?.ratio),
  };
}
