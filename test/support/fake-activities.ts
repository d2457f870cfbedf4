/** Activities for workflow tests: they return what the test sets and record their inputs. */
import { Context } from "@temporalio/activity";
import type {
  AgentActivities,
  CallFacts,
  CompactionFacts,
  ModelStepFacts,
  OpenedSession,
  OpenSessionInput,
} from "../../activities/contract/activities.ts";
import type { Publication } from "../../activities/contract/delivery.ts";
import type { VerifiedWork } from "../../activities/contract/verify.ts";
import { budgetFor } from "../../activities/config/budget.ts";
import type { GuidanceDelivery, Guidance, StoreGuidanceInput } from "../../activities/contract/guidance.ts";
import type { RunPolicy } from "../../activities/contract/run-policy.ts";
import { eventually } from "./eventually.ts";

const CONTEXT = { used: 1_000, estimated: false, prunable: 0 };
const USAGE = { input: 900, output: 100, cached: 0, reasoning: 0 };

export const answered = (
  calls: readonly CallFacts[] = [],
  more: { used?: number; finish?: string; costUsd?: number; wroteCall?: string } = {},
): ModelStepFacts => ({
  kind: "answered",
  calls,
  finish: more.finish ?? (calls.length > 0 ? "tool-calls" : "stop"),
  usage: USAGE,
  wroteCall: more.wroteCall,
  costUsd: more.costUsd,
  context: { ...CONTEXT, used: more.used ?? CONTEXT.used },
  epoch: 1,
});
export const unavailable: ModelStepFacts = { kind: "unavailable", reason: "rate-limit", epoch: 1 };
export const empty: ModelStepFacts = { kind: "empty", usage: USAGE, epoch: 1 };
export const bashCall: CallFacts = { name: "bash", about: "npm test" };
export const compactedTo = (round: number, usedTokens = 500): CompactionFacts => ({
  kind: "compacted",
  round,
  before: 100_000,
  after: usedTokens,
  context: { ...CONTEXT, used: usedTokens, estimated: true },
});
interface Asked {
  readonly name: keyof AgentActivities;
  readonly input: unknown;
}

export interface FakeActivities {
  readonly activities: AgentActivities;
  readonly requests: Asked[];
  /** Inputs of one activity, in order. */
  inputsOf<Name extends keyof AgentActivities>(name: Name): Parameters<AgentActivities[Name]>[0][];
  /** The numbers of the steps that the model was asked for. */
  steps(): number[];
  /** Of each of those, whether it was to be the last. */
  wrapUps(): boolean[];
  /** Ids of the messages that each step brought. */
  readonly heardBy: string[][];
  /** The same in one list. */
  heardIds(): string[];
  /** The messages that were stored, in that order. */
  takenMessages(): Guidance[];
  /** Their ids. */
  stored(): string[];
  untilAsked(steps: number): Promise<void>;
}

export interface FakeOptions {
  /** The model's answers in order; the last one repeats. */
  readonly steps: readonly (ModelStepFacts | (() => Promise<ModelStepFacts>))[];
  readonly rounds?: readonly CompactionFacts[];
  /** Hash of each call's result in order; default all different. */
  readonly hashes?: readonly string[];
  readonly maxSteps?: number;
  /** How long each call takes. */
  readonly ms?: number;
  readonly maxHistoryEvents?: number;
  readonly step?: number;
  /** Outcomes of deliveries, in order; then none. */
  readonly publications?: Publication[];
  /** What the looks at the work see, in order; then it passes. */
  readonly verified?: VerifiedWork[];
  /** Further fields of the run's policy. */
  readonly policy?: Partial<RunPolicy>;
}

export function fakeActivities(options: FakeOptions): FakeActivities {
  let steps = 0;
  let rounds = 0;
  let calls = 0;
  const heardBy: string[][] = [];
  const queue = createQueue();
  const { requests, activities } = noting({
    openSession: async (input) => {
      queue.add((input.arrived ?? []).map(({ id }) => id));
      return opened(options, input, queue.named());
    },
    openSandbox: async () => ({ container: "fake-box" }),
    fetchRepository: async () => ({ commit: "c0ffee", bytes: 1 }),
    refreshCheckout: async () => undefined,
    setUpSandbox: async () => {},
    verifyWork: async () => options.verified?.shift() ?? { outcome: "passed", tree: "t0" },
    publish: async () => options.publications?.shift() ?? { outcome: "nothing", branch: "longhaul/fake" },
    async storeGuidance({ items }) {
      const ids = items.map(({ id }) => id);
      queue.add(ids);
      return {};
    },
    async modelStep() {
      const answer = options.steps[Math.min(steps, options.steps.length - 1)];
      steps += 1;
      const delivery = queue.deliver();
      heardBy.push([...(delivery.taken ?? [])]);
      if (answer === undefined) throw new Error("The test has no answer.");
      return { ...(typeof answer === "function" ? await answer() : answer), ...delivery };
    },
    async runTool() {
      calls += 1;
      const { ms = 1 } = options;
      return { outcome: "completed", tokens: 10, ms, hash: options.hashes?.[calls - 1] ?? `hash${calls}` };
    },
    beginWait: async ({ nowMs }) => ({ kind: "waits", startedAtMs: nowMs, untilMs: nowMs + 60_000 }),
    watchSandbox: async () => {},
    endWait: async () => ({ outcome: "completed", tokens: 10, ms: 1, hash: "wait" }),
    checkCommands: async () => ({ isTold: false }),
    askPerson: async () => ({ kind: "passed" }),
    settleQuestion: async () => ({ kind: "allowed" }),
    askBudget: async () => ({ kind: "passed" }),
    settleBudget: async () => ({}),
    notify: async () => {},
    markWaiting: async () => {},
    openDelegate: async (input) => ({
      kind: "open",
      child: `fake.s${input.step}c${input.index}`,
      access: "read",
    }),
    settleDelegate: async () => ({
      kind: "settled",
      facts: { outcome: "completed", tokens: 10, ms: 1, hash: "settled" },
    }),
    async summarize(input) {
      const facts = options.rounds?.[rounds] ?? compactedTo(input.round);
      rounds += 1;
      return { ...facts, ...queue.deliver() };
    },
    undoCompaction: async () => ({
      kind: "undone",
      round: rounds,
      context: { ...CONTEXT, used: 100_000, estimated: true },
    }),
    prune: async () => ({ pruned: 0, savedTokens: 0, context: CONTEXT }),
    saveWorkspace: async () => ({ changed: 0, bytes: 0 }),
    parkSandbox: async () => ({ changed: 0, bytes: 0 }),
    closeSandbox: async () => ({ changed: 0, bytes: 0 }),
    closeSession: async (input) => ({
      status: input.status,
      steps: input.step,
      rounds,
      result: "",
      usage: { ...USAGE, calls: steps },
    }),
  });
  return { activities, requests, heardBy, ...seenIn(requests, heardBy) };
}

/** The messages that wait for each session, delivered once. */
function createQueue() {
  const waiting = new Map<string, string[]>();
  const known = new Set<string>();
  return {
    add(ids: readonly string[]): void {
      const fresh = ids.filter((id) => !known.has(`${sessionHere()} ${id}`));
      for (const id of fresh) known.add(`${sessionHere()} ${id}`);
      waiting.set(sessionHere(), [...(waiting.get(sessionHere()) ?? []), ...fresh]);
    },
    /** Those that wait, not delivered yet. */
    named: () => (waiting.get(sessionHere()) ?? []).map((id) => ({ id, tokens: 1 })),
    deliver(): GuidanceDelivery {
      const messages = waiting.get(sessionHere()) ?? [];
      waiting.delete(sessionHere());
      return messages.length === 0 ? {} : { taken: messages };
    },
  };
}

/** The same activities, each of which notes what it is asked before it answers. */
function noting(answers: AgentActivities): Pick<FakeActivities, "activities" | "requests"> {
  const requests: Asked[] = [];
  const noted = Object.entries(answers).map(([name, answer]: [string, (input: never) => unknown]) => [
    name,
    (input: never) => {
      requests.push({ name: name as keyof AgentActivities, input });
      return answer(input);
    },
  ]);
  return { requests, activities: Object.fromEntries(noted) as AgentActivities };
}

function opened(
  options: FakeOptions,
  input: OpenSessionInput,
  waiting: OpenedSession["waiting"],
): OpenedSession {
  return {
    policy: {
      model: "fake/model",
      maxSteps: options.maxSteps ?? 50,
      budget: budgetFor(128_000, { triggerRatio: 0.8 }),
      maxHistoryEvents: options.maxHistoryEvents ?? 3_000,
      timeouts: { modelMs: 10_000, toolMs: 10_000 },
      asks: {},
      prune: "auto",
      maxFutileRounds: 3,
      searchAttributes: false,
      taskQueues: {},
      ...options.policy,
    },
    epoch: 1,
    step: input.continuedStep ?? options.step ?? 0,
    context: CONTEXT,
    round: 0,
    waiting,
  };
}

/** The messages that runs gave to their activities to store. */
const storedItems = (requests: readonly Asked[]): Guidance[] =>
  requests.flatMap((call) => {
    if (call.name === "openSession") return [...((call.input as OpenSessionInput).arrived ?? [])];
    return call.name === "storeGuidance" ? [...(call.input as StoreGuidanceInput).items] : [];
  });

function seenIn(
  requests: readonly Asked[],
  heardBy: readonly (readonly string[])[],
): Omit<FakeActivities, "activities" | "requests" | "heardBy"> {
  const inputsOf: FakeActivities["inputsOf"] = (name) =>
    requests.filter((call) => call.name === name).map((call) => call.input) as never;
  return {
    inputsOf,
    steps: () => inputsOf("modelStep").map(({ step }) => step),
    wrapUps: () => inputsOf("modelStep").map(({ wrapUp }) => wrapUp ?? false),
    heardIds: () => heardBy.flat(),
    takenMessages: () => storedItems(requests),
    stored: () => storedItems(requests).map(({ id }) => id),
    async untilAsked(steps) {
      await eventually(`model step ${steps}`, () => inputsOf("modelStep").length >= steps);
    },
  };
}

/** The session whose activity this is. */
export const sessionHere = (): string => Context.current().info.workflowExecution?.workflowId ?? "";

/** Waits for its cancellation, then does what `then` says. */
export function untilStopped<T>(then: () => T | Promise<T>): () => Promise<T> {
  return async () => {
    const context = Context.current();
    const beat = setInterval(() => context.heartbeat(), 50);
    try {
      await context.cancelled.catch(() => undefined);
      return await then();
    } finally {
      clearInterval(beat);
    }
  };
}

export const interrupted = (): ModelStepFacts => ({
  kind: "interrupted",
  context: { used: 1_000, estimated: true, prunable: 0 },
  epoch: 1,
});
