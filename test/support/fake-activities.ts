/** Activities for workflow tests: they return what the test sets and record their inputs. */
import type {
  AgentActivities,
  CallFacts,
  CompactionFacts,
  ModelStepFacts,
} from "../../activities/contract/activities.ts";
import type { Publication } from "../../activities/contract/delivery.ts";
import { budgetFor } from "../../activities/contract/budget.ts";
import type { RunPolicy } from "../../activities/contract/run-policy.ts";

const CONTEXT = { used: 1_000, estimated: false, prunable: 0 };
const USAGE = { input: 900, output: 100, cached: 0, reasoning: 0 };

export const answered = (
  calls: readonly CallFacts[] = [],
  more: { used?: number; finish?: string; costUsd?: number } = {},
): ModelStepFacts => ({
  kind: "answered",
  calls,
  finish: more.finish ?? (calls.length > 0 ? "tool-calls" : "stop"),
  usage: USAGE,
  ...(more.costUsd === undefined ? {} : { costUsd: more.costUsd }),
  context: { ...CONTEXT, used: more.used ?? CONTEXT.used },
  epoch: 1,
});
export const unavailable: ModelStepFacts = { kind: "unavailable", reason: "rate-limit", epoch: 1 };
export const overflow: ModelStepFacts = {
  kind: "overflow",
  by: "provider",
  context: { ...CONTEXT, used: 200_000 },
  epoch: 1,
};
export const empty: ModelStepFacts = { kind: "empty", usage: USAGE, epoch: 1 };
export const bashCall: CallFacts = { name: "bash", about: "npm test" };
export const compactedTo = (round: number, used = 500): CompactionFacts => ({
  kind: "compacted",
  round,
  before: 100_000,
  after: used,
  context: { ...CONTEXT, used, estimated: true },
});
export const roundFailed: CompactionFacts = {
  kind: "failed",
  reason: "inflated",
  context: { ...CONTEXT, used: 100_000 },
};

interface Asked {
  readonly name: keyof AgentActivities;
  readonly input: unknown;
}

export interface FakeActivities {
  readonly activities: AgentActivities;
  readonly asked: Asked[];
  /** Inputs of one activity, in order. */
  inputsOf<Name extends keyof AgentActivities>(name: Name): Parameters<AgentActivities[Name]>[0][];
}

export interface FakeOptions {
  /** The model's answers in order; the last one repeats. */
  readonly steps: readonly (ModelStepFacts | (() => Promise<ModelStepFacts>))[];
  readonly rounds?: readonly CompactionFacts[];
  /** Hash of each call's result in order; default all different. */
  readonly hashes?: readonly string[];
  readonly maxSteps?: number;
  readonly maxHistoryEvents?: number;
  readonly step?: number;
  /** Outcomes of deliveries, in order; then none. */
  readonly publications?: Publication[];
  /** Further fields of the run's policy. */
  readonly policy?: Partial<RunPolicy>;
}

export function fakeActivities(options: FakeOptions): FakeActivities {
  const asked: Asked[] = [];
  let steps = 0;
  let rounds = 0;
  let calls = 0;
  const note = (name: keyof AgentActivities, input: unknown) => void asked.push({ name, input });
  const activities: AgentActivities = {
    async openSession(input) {
      note("openSession", input);
      return {
        policy: {
          model: "fake/model",
          maxSteps: options.maxSteps ?? 50,
          budget: budgetFor(128_000, { triggerRatio: 0.8 }),
          maxHistoryEvents: options.maxHistoryEvents ?? 3_000,
          modelTimeoutMs: 10_000,
          toolTimeoutMs: 10_000,
          keepsInterrupt: true,
          announcesQueued: true,
          needsStop: true,
          searchAttributes: false,
          taskQueues: {},
          ...options.policy,
        },
        epoch: 1,
        step: input.continuedStep ?? options.step ?? 0,
        context: CONTEXT,
        round: 0,
      };
    },
    async openSandbox(input) {
      note("openSandbox", input);
      return { container: "fake-sandbox" };
    },
    async fetchRepository(input) {
      note("fetchRepository", input);
      return { commit: "c0ffee", bytes: 1 };
    },
    async setUpSandbox(input) {
      note("setUpSandbox", input);
    },
    async publish(input) {
      note("publish", input);
      return options.publications?.shift() ?? { outcome: "nothing", branch: "longhaul/fake" };
    },
    async parkGuidance(input) {
      note("parkGuidance", input);
    },
    async announceQueued(input) {
      note("announceQueued", input);
    },
    async modelStep(input) {
      note("modelStep", input);
      const answer = options.steps[Math.min(steps, options.steps.length - 1)];
      steps += 1;
      if (answer === undefined) throw new Error("The test has no answer.");
      return typeof answer === "function" ? answer() : answer;
    },
    async runTool(input) {
      note("runTool", input);
      calls += 1;
      return { outcome: "completed", tokens: 10, ms: 1, hash: options.hashes?.[calls - 1] ?? `hash${calls}` };
    },
    async askPerson(input) {
      note("askPerson", input);
      return { kind: "passed" };
    },
    async settleQuestion(input) {
      note("settleQuestion", input);
      return { kind: "allowed" };
    },
    async askBudget(input) {
      note("askBudget", input);
      return { kind: "passed" };
    },
    async settleBudget(input) {
      note("settleBudget", input);
      return {};
    },
    async notify(input) {
      note("notify", input);
    },
    async markWaiting(input) {
      note("markWaiting", input);
    },
    async openDelegate(input) {
      note("openDelegate", input);
      return { kind: "open", child: `fake.s${input.step}c${input.index}`, access: "read" };
    },
    async settleDelegate(input) {
      note("settleDelegate", input);
      return { kind: "settled", facts: { outcome: "completed", tokens: 10, ms: 1, hash: "settled" } };
    },
    async summarize(input) {
      note("summarize", input);
      const facts = options.rounds?.[rounds] ?? compactedTo(input.round);
      rounds += 1;
      return facts;
    },
    async undoCompaction(input) {
      note("undoCompaction", input);
      return { kind: "undone", round: rounds, context: { ...CONTEXT, used: 100_000, estimated: true } };
    },
    async prune(input) {
      note("prune", input);
      return { pruned: 0, savedTokens: 0, context: CONTEXT };
    },
    async saveWorkspace(input) {
      note("saveWorkspace", input);
      return { changed: 0, bytes: 0 };
    },
    async parkSandbox(input) {
      note("parkSandbox", input);
      return { changed: 0, bytes: 0 };
    },
    async closeSandbox(input) {
      note("closeSandbox", input);
      return { changed: 0, bytes: 0 };
    },
    async closeSession(input) {
      note("closeSession", input);
      return {
        status: input.status,
        steps: input.step,
        rounds,
        result: "",
        usage: { ...USAGE, calls: steps },
      };
    },
  };
  return {
    activities,
    asked,
    inputsOf: (name) => asked.filter((call) => call.name === name).map((call) => call.input) as never,
  };
}
