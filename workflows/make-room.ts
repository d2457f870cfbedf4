/** The loop's second part: makes room in the window, once the waiting messages are drained. Also undoes compactions. */
import type { GuidanceDelivery } from "../activities/contract/guidance.ts";
import { pruneDue } from "../activities/contract/budget.ts";
import type { RunPolicy } from "../activities/contract/run-policy.ts";
import { enterPhase, interruptible, optionsOf, storeArrived, type Run } from "./run.ts";
import { applyCompaction, applyPrune, applyUndo, beginAnew } from "./agent-state.ts";
import {
  askedModel,
  afterOverflow,
  compactionDue,
  fitsNow,
  pruneComesFirst,
  type CompactionPlan,
} from "./loop-policy.ts";
import { drain, putBack, applyDelivery, toIds } from "./inbox.ts";
import { perform } from "./proxies.ts";

/**
 * Makes the next request smaller if that is due: old results are hidden where that comes first, and a summary is made if that is
 * not enough. The waiting messages are drained first.
 * @returns how long to wait, in ms, if the model's limit is used up: it is still due then
 */
export async function makeRoom(run: Run, policy: RunPolicy): Promise<number | undefined> {
  const { state } = run;
  const plan = afterOverflow(state.answers.overflows, policy) ?? compactionDue(state, policy);
  if (plan === undefined) return undefined;
  if (pruneComesFirst(state, policy, plan)) {
    await prune(run);
    if (fitsNow(state, policy)) return undefined;
  }
  return compact(run, plan);
}

/**
 * For an activity that delivers the waiting messages before its own work. If it may not have, they wait again.
 * @returns undefined if `body` was aborted
 */
async function delivering<Facts extends GuidanceDelivery>(
  run: Run,
  body: (guidance: readonly string[] | undefined) => Promise<Facts | undefined>,
): Promise<Facts | undefined> {
  const { state } = run;
  await storeArrived(run);
  const drained = drain(state.inbox);
  let facts: Facts | undefined;
  try {
    facts = await body(toIds(drained));
    return facts;
  } finally {
    if (facts === undefined) putBack(state.inbox, drained);
    else applyDelivery(state.inbox, drained, facts);
    if (facts?.taken !== undefined) beginAnew(state);
  }
}

async function compact(run: Run, plan: CompactionPlan): Promise<number | undefined> {
  const { state } = run;
  enterPhase(run, "compacting");
  const { compaction } = state;
  const request = compaction.request;
  compaction.request = undefined;
  state.interrupting = false;
  const round = compaction.round + 1;
  const { fallback, hasFallback } = askedModel(state, run.policy);
  const input = {
    step: state.step + 1,
    round,
    ...plan,
    fallback,
    waitsForLimits: hasFallback ? undefined : (true as const),
  };
  const summary = `compaction round ${round} · ${plan.trigger}`;
  const facts = await delivering(run, (guidance) =>
    interruptible(run, () => perform("summarize", optionsOf(run), summary, { ...input, guidance })),
  );
  state.interrupting = false;
  if (facts?.kind === "limited") {
    state.context = facts.context;
    compaction.request ??= request;
    return facts.waitMs;
  }
  if (facts) applyCompaction(state, facts);
  state.limits = undefined;
  return undefined;
}

/** Undoes as many compactions as a person asked for since the last step. */
export async function undoCompactions(run: Run): Promise<void> {
  const { state } = run;
  const { undoRequests } = state.compaction;
  for (let requestId = undoRequests[0]; requestId !== undefined; requestId = undoRequests[0]) {
    enterPhase(run, "compacting");
    const input = { step: state.step + 1, requestId };
    applyUndo(
      state,
      await perform("undoCompaction", optionsOf(run), "undo the newest compaction round", input),
    );
    undoRequests.shift();
  }
}

/** Hides old results after a step, if they are hidden so. */
export async function pruneOld(run: Run, policy: RunPolicy): Promise<void> {
  const { state } = run;
  if (!pruneDue(state.context.prunable, policy.budget, policy.prune)) return;
  enterPhase(run, "pruning");
  applyPrune(state, await perform("prune", optionsOf(run), PRUNE_SUMMARY, { step: state.step }));
}

const PRUNE_SUMMARY = "prune old tool results";

/** Hides old results before a step. */
async function prune(run: Run): Promise<void> {
  const { state } = run;
  enterPhase(run, "pruning");
  const facts = await delivering(run, (guidance) =>
    perform("prune", optionsOf(run), PRUNE_SUMMARY, { step: state.step, delivers: true, guidance }),
  );
  if (facts) applyPrune(state, facts);
}
