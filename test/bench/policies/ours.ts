/** Our own policies in the replay: the product's code decides, only the summariser's words are scripted. */
import type { RunConfig } from "../../../activities/config/agent-config.ts";
import type { StrategyName } from "../../../activities/config/strategies.ts";
import { compact } from "../../../activities/compaction/compact.ts";
import type { CompactionInput, SummaryRequest } from "../../../activities/compaction/compaction.ts";
import {
  type Budget,
  type Occasion,
  type PruneFigures,
  type PruneFirst,
  pruneDue,
  prunesFirst,
  type PruneNumbers,
} from "../../../activities/contract/budget.ts";
import { planPrune } from "../../../activities/transcript/prune-plan.ts";
import { viewSize } from "../../../activities/transcript/size.ts";
import { truncateText } from "../../../activities/text/cut.ts";
import { calculateBudget, windowMeasures } from "../../../activities/config/budget.ts";
import { toolLimitsOf } from "../../../activities/config/run-policy.ts";
import { afterRound, summaryText } from "../../support/compacting.ts";
import { configOf } from "../../support/run-config.ts";
import { countTokens, MAX_OUTPUT_TOKENS, type Outcome, type Replay } from "./replay.ts";
import { scriptedSummary, type ScriptedSummary } from "./scripted-summary.ts";
import type { Fact } from "./trajectory.ts";

/** Tokens of a summary of as many words as the prompt allows: 500 words come to 800. */
const TOKENS_PER_WORD = 1.6;

export interface Policy {
  readonly strategy?: StrategyName;
  readonly prune?: "auto" | "always" | "never";
  /** Instead of what the table says for the window. */
  readonly pruneFirst?: PruneFirst;
  /** The session begins in a window twice as large, and changes to a model with its own before this step. */
  readonly switchAt?: number;
  /** Never before the provider refuses: the reference. */
  readonly onlyOnOverflow?: boolean;
  /** Trigger for a person who comes back to an empty cache; undefined: the one for all. */
  readonly returnTrigger?: number;
}

/** Steps before which a session changes to a model with a smaller window: one session for each. */
const SWITCHES = [60, 120, 180, 240];

/** What hiding old results first, on one occasion alone, comes to beside a summary on every occasion. */
export interface Comparison {
  /** Billed-equivalent tokens a step; means over several sessions if the model is switched. */
  readonly first: Mean;
  readonly summary: Mean;
}

interface Mean {
  readonly perStep: number;
  readonly facts: number;
  readonly prunes: number;
}

/** @param share of the trigger that may be left, at most @param replay a fresh one each time */
export async function compareFirst(
  occasion: Occasion,
  share: number,
  replay: () => Replay,
): Promise<Comparison> {
  const mean = async (pruneFirst: PruneFirst): Promise<Mean> => {
    const outcomes: Outcome[] = [];
    for (const switchAt of occasion === "smaller" ? SWITCHES : [undefined])
      outcomes.push(await replayOurs(replay(), { pruneFirst, switchAt }));
    const of = (name: "perStep" | "facts" | "prunes") =>
      outcomes.reduce((sum, outcome) => sum + outcome[name], 0) / outcomes.length;
    return { perStep: of("perStep"), facts: of("facts"), prunes: of("prunes") };
  };
  return { first: await mean({ [occasion]: share }), summary: await mean({}) };
}

/** Plays all steps of the replay's trajectory. */
export async function replayOurs(replay: Replay, policy: Policy): Promise<Outcome> {
  const ownTokens = replay.contextWindow;
  if (policy.switchAt !== undefined) replay.contextWindow = 2 * ownTokens;
  let [config, budget] = figuresOf(replay, policy);
  for (const [at, step] of replay.trajectory.steps.entries()) {
    if (step.user !== undefined) replay.say(step);
    if (at === policy.switchAt) {
      replay.switchTo(ownTokens);
      [config, budget] = figuresOf(replay, policy);
    }
    await makeRoom(replay, config, budget, policy);
    replay.answer(step);
    const handle = `s${replay.step - 1}c0`;
    const stored = step.calls.map(
      ({ name, output }) =>
        truncateText(output, { maxChars: toolLimitsOf(config, name).maxChars, handle }).text,
    );
    replay.addResults(step, stored);
    const mode = policy.prune === "always" ? "each-step" : "auto";
    if (pruneDue(numbersOf(replay, budget).prunableTokens, budget, mode)) prune(replay, budget);
  }
  return replay.outcome();
}

function figuresOf(replay: Replay, policy: Policy): [RunConfig, Budget] {
  const { strategy, returnTrigger, prune, pruneFirst } = policy;
  const config = configOf(
    { context: { strategy, options: { returnTrigger, prune } } },
    { contextWindow: replay.contextWindow, maxOutput: MAX_OUTPUT_TOKENS, input: ["text"] },
  );
  const budget = calculateBudget(config, replay.prefixTokens);
  return [config, pruneFirst === undefined ? budget : { ...budget, pruneFirst }];
}

/** As the loop does: a refused request is followed by a compaction, twice at most; then the oldest go. */
async function makeRoom(replay: Replay, config: RunConfig, budget: Budget, policy: Policy): Promise<void> {
  const { occasion } = replay;
  const { returnTokens = budget.triggerTokens } = budget;
  const triggerTokens = occasion === "return" ? returnTokens : budget.triggerTokens;
  const isDue = () => policy.onlyOnOverflow !== true && sizeOf(replay, budget).next.tokens >= triggerTokens;
  if (isDue() && prunesFirst(numbersOf(replay, budget), occasion, { budget, triggerTokens }))
    prune(replay, budget);
  if (isDue()) await compactReplay(replay, config, budget, "threshold");
  for (let tries = 0; replay.overflown; tries += 1) {
    replay.overflows += 1;
    if (tries < 2) await compactReplay(replay, config, budget, "overflow");
    else replay.dropOldest();
  }
}

function numbersOf(replay: Replay, budget: Budget): PruneNumbers {
  const { next, prunableTokens } = sizeOf(replay, budget);
  return { usedTokens: next.tokens, prunableTokens };
}

function prune(replay: Replay, budget: Budget): void {
  const hidden = new Set(planPrune(replay.rows, budget).sequences);
  if (hidden.size === 0) return;
  replay.prunes += 1;
  replay.rows = replay.rows.map((row) =>
    hidden.has(row.sequence) ? { ...row, prunedStep: replay.step } : row,
  );
}

function sizeOf({ rows, prefixTokens, contextWindow }: Replay, { pruneProtectTokens }: PruneFigures) {
  const { oneRequestTokens } = windowMeasures({ contextWindow });
  return viewSize({ rows, prefixTokens, ratio: 1, oneRequestTokens, pruneProtectTokens });
}

async function compactReplay(
  replay: Replay,
  config: RunConfig,
  budget: Budget,
  trigger: CompactionInput["trigger"],
): Promise<void> {
  const { rows, prefixTokens } = replay;
  const round = replay.rounds + 1;
  const summariserRoomTokens = config.contextWindow;
  const input = { rows, budget, round, trigger, prefixTokens, summariserRoomTokens };
  const done = await compact(config.context.strategy, input, async (request) => {
    const words = Number(/at most (\d+) words/.exec(request.text)?.[1]);
    const text = written(scriptedSummary(asked(replay, request), request.text, words * TOKENS_PER_WORD));
    const ask = countTokens(request.text) + countTokens(request.system);
    replay.billSummary([{ key: request, tokens: ask }], countTokens(text));
    return { text, finish: "stop", hasToolCall: false };
  });
  if (done.kind !== "compacted") return;
  replay.rounds = round;
  const kept = new Set(rows.map((row) => row.sequence));
  // The summary takes the next sequence, as the store would give it.
  replay.rows = afterRound(rows, { ...done }, round).map((row) =>
    kept.has(row.sequence) ? row : { ...row, sequence: replay.nextSequence() },
  );
}

/** Our prompt leaves the files to the program, and the decisions of the summary so far. */
function asked(replay: Replay, { text }: SummaryRequest): Fact[] {
  const [, history = ""] = text.split("<history>");
  const isKept = ({ kind, key }: Fact) => kind === "path" || (kind !== "finding" && !history.includes(key));
  return replay.trajectory.facts.filter((fact) => !isKept(fact));
}

function written({ facts, narrative }: ScriptedSummary): string {
  const listed = (...kinds: readonly Fact["kind"][]) =>
    facts
      .filter((fact) => kinds.includes(fact.kind))
      .map((fact) => `- ${fact.words}`)
      .join("\n");
  return summaryText({ decisions: listed("decision", "rule"), state: `${narrative}\n${listed("finding")}` });
}
