/** Our own policies in the replay: the product's code decides, only the summariser's words are scripted. */
import { agentConfigSchema, type RunConfig } from "../../../activities/config/agent-config.ts";
import { type StrategyName } from "../../../activities/contract/strategies.ts";
import { compact } from "../../../activities/compaction/compact.ts";
import type { CompactionInput, SummaryRequest } from "../../../activities/compaction/compaction.ts";
import type { Budget } from "../../../activities/contract/budget.ts";
import { planPrune } from "../../../activities/transcript/prune-plan.ts";
import { pruneDue, type PruneMode } from "../../../activities/contract/prune-due.ts";
import { viewSize } from "../../../activities/transcript/size.ts";
import type { StoredMessage } from "../../../activities/contract/message.ts";
import { truncateText } from "../../../activities/transcript/truncate.ts";
import { budgetOf, toolLimitsOf } from "../../../activities/config/run-policy.ts";
import { afterRound, summaryText } from "../../support/compacting.ts";
import { countTokens, MAX_OUTPUT_TOKENS, type Policy, type Replay } from "./replay.ts";
import type { Fact } from "./trajectory.ts";
import { listed, scriptedSummary, type ScriptedSummary } from "./scripted-summary.ts";

/** Tokens of a summary of as many words as the prompt allows: 500 words come to 800. */
const TOKENS_PER_WORD = 1.6;

export interface OurOptions {
  readonly strategy?: StrategyName;
  readonly prune?: PruneMode;
  /** Never before the provider refuses: the reference. */
  readonly onlyOnOverflow?: boolean;
  /** Trigger for a person who comes back to an empty cache; undefined: the one for all. */
  readonly returnTrigger?: number;
}

export function ourPolicy(name: string, windowTokens: number, options: OurOptions = {}): Policy {
  const config = configOf(windowTokens, options);
  const limits = new Map<string, number>();
  return {
    name,
    limit(tool, output, index) {
      const maxChars = limits.get(tool) ?? toolLimitsOf(config, tool).maxChars;
      limits.set(tool, maxChars);
      return truncateText(output, { maxChars, handle: `s${index}c0` }).text;
    },
    between: (replay, overflow) => {
      const budget = budgetOf(config, replay.prefixTokens);
      const { triggerTokens, returnTokens = triggerTokens } = budget;
      const trigger = replay.cold ? returnTokens : triggerTokens;
      const due = sizeOf(replay).next.tokens >= trigger && options.onlyOnOverflow !== true;
      return due || overflow ? compactReplay(replay, config, budget, overflow) : Promise.resolve();
    },
    afterTools: (replay) => prune(replay, config, options),
  };
}

function prune(replay: Replay, config: RunConfig, options: OurOptions): void {
  const budget = budgetOf(config, replay.prefixTokens);
  const { next, prunableTokens, growthTokens } = sizeOf(replay);
  if (!pruneDue({ usedTokens: next.tokens, prunableTokens, growthTokens }, budget, options.prune)) return;
  const hidden = new Set(planPrune(replay.rows, budget).sequences);
  if (hidden.size === 0) return;
  replay.prunes += 1;
  replay.rows = replay.rows.map((row) =>
    hidden.has(row.sequence) ? { ...row, prunedStep: replay.step } : row,
  );
}

function configOf(windowTokens: number, { strategy, returnTrigger }: OurOptions): RunConfig {
  const { context, sandbox, limits } = agentConfigSchema.parse({
    context: { strategy, options: { returnTrigger } },
  });
  return {
    model: "openai/gpt-5",
    contextWindow: windowTokens,
    maxOutput: MAX_OUTPUT_TOKENS,
    api: "responses",
    input: ["text"],
    context,
    tools: {},
    sandbox,
    limits,
  };
}

function sizeOf({ rows, prefixTokens, settings }: Replay) {
  return viewSize({ rows, prefixTokens, ratio: 1, windowTokens: settings.windowTokens });
}

async function compactReplay(
  replay: Replay,
  config: RunConfig,
  budget: Budget,
  overflow: boolean,
): Promise<void> {
  const { rows } = replay;
  const round = replay.rounds + 1;
  const input: CompactionInput = {
    rows,
    budget,
    round,
    trigger: overflow ? "overflow" : "threshold",
    prefixTokens: replay.prefixTokens,
    summariserWindowTokens: config.contextWindow,
  };
  const done = await compact(config.context.strategy, input, async (request) => {
    const words = Number(/At most (\d+) words/.exec(request.text)?.[1]);
    const text = written(scriptedSummary(asked(replay, request), request.text, words * TOKENS_PER_WORD));
    const ask = countTokens(request.text) + countTokens(request.system);
    replay.billSummary([{ key: request, tokens: ask }], countTokens(text));
    return { text, finish: "stop", hasToolCall: false };
  });
  if (done.kind !== "compacted") return;
  replay.rounds = round;
  const kept = new Map(rows.map((row) => [row.sequence, row]));
  replay.rows = afterRound(rows, { ...done }, round).map((row) => kept.get(row.sequence) ?? row);
  const summary = replay.rows.find((row) => row.kind === "summary" && !kept.has(row.sequence));
  if (summary !== undefined) renumber(replay, summary);
}

/** The summary takes the next sequence, as the store would give it. */
function renumber(replay: Replay, summary: StoredMessage): void {
  const sequence = replay.nextSequence();
  replay.rows = replay.rows.map((row) => (row === summary ? { ...row, sequence } : row));
}

/** Our prompt leaves the files to the program, and the decisions of the summary so far. */
function asked(replay: Replay, { text }: SummaryRequest): Fact[] {
  const [, history = ""] = text.split("<history>");
  const isKept = ({ kind, key }: Fact) => kind === "path" || (kind !== "finding" && !history.includes(key));
  return replay.settings.trajectory.facts.filter((fact) => !isKept(fact));
}

function written({ facts, narrative }: ScriptedSummary): string {
  const decisions = facts.filter((fact) => fact.kind === "decision" || fact.kind === "rule");
  const findings = facts.filter((fact) => fact.kind === "finding");
  return summaryText({ decisions: listed(decisions), state: `${narrative}\n${listed(findings)}` });
}
