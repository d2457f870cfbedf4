/** The agent loop over activities called directly: the workflow's state and decisions, without its engine. */
import type { Guidance, ModelStepFacts, RunPolicy } from "../../activities/contract/activities.ts";
import { pruneDue } from "../../activities/contract/prune-due.ts";
import {
  compacted,
  createState,
  opened,
  pruned,
  ran,
  stepped,
  type AgentState,
} from "../../workflows/agent-state.ts";
import { afterAnswer, afterOverflow, compactionDue } from "../../workflows/loop-policy.ts";
import type { DirectAgent } from "./direct-agent.ts";

export interface LoopEnd {
  readonly status: "completed" | "ContextOverflow" | "EmptyAnswer" | "max_steps";
  readonly state: AgentState;
  readonly policy: RunPolicy;
  readonly prunes: number;
}

/**
 * Plays a session to its end, as workflows/coding-agent.ts does.
 * @param options.guidanceAt what is said before a step
 */
export async function playLoop(
  agent: DirectAgent,
  options: { readonly guidanceAt?: (step: number) => readonly Guidance[]; readonly maxSteps?: number } = {},
): Promise<LoopEnd> {
  const session = await agent.perform("openSession", { chain: agent.runId });
  const { policy } = session;
  const state = createState({});
  opened(state, session);
  let overflows = 0;
  let empty = 0;
  let prunes = 0;
  const end = (status: LoopEnd["status"]): LoopEnd => ({ status, state, policy, prunes });
  for (;;) {
    const plan = afterOverflow(overflows, policy) ?? compactionDue(state, policy);
    if (plan) {
      const input = { step: state.step + 1, round: state.round + 1, ...plan };
      compacted(state, await agent.perform("summarize", input));
    }
    if (state.steps >= (options.maxSteps ?? Infinity)) return end("max_steps");
    const step = state.step + 1;
    const guidance = overflows + empty > 0 ? [] : (options.guidanceAt?.(step) ?? []);
    const parked = state.inbox.parked > 0;
    state.inbox.parked = 0;
    const answer: ModelStepFacts = await agent.perform("modelStep", {
      step,
      guidance,
      ...(parked ? { parked } : {}),
    });
    stepped(state, answer);
    if (answer.kind === "overflow") {
      overflows += 1;
      if (!afterOverflow(overflows, policy)) return end("ContextOverflow");
      continue;
    }
    overflows = 0;
    if (answer.kind === "interrupted") continue;
    if (answer.kind === "empty") {
      empty += 1;
      if (empty > 1) return end("EmptyAnswer");
      continue;
    }
    empty = 0;
    const next = afterAnswer(state, answer, policy);
    if (next.kind === "completed") return end("completed");
    if (next.kind === "failed") throw new Error(next.message);
    if (next.kind === "again" || next.kind === "unfinished") continue;
    await Promise.all(
      answer.calls.map(async (call, index) => {
        ran(state, call, await agent.perform("runTool", { step, index }));
      }),
    );
    const { used: usedTokens, prunable: prunableTokens, growth: growthTokens } = state.context;
    if (pruneDue({ usedTokens, prunableTokens, growthTokens }, policy.budget, policy.prune ?? "always")) {
      pruned(state, await agent.perform("prune", { step }));
      prunes += 1;
    }
  }
}
