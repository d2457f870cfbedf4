import { describe, expect, it } from "vitest";
import { budgetFor, pruneFirstFor } from "../../../activities/config/budget.ts";
import { estimatedNextInput } from "../../../activities/contract/request-size.ts";
import type { CompactionFacts } from "../../../activities/contract/activities.ts";
import type { RunPolicy } from "../../../activities/contract/run-policy.ts";
import { applyCompaction, applyStep, createState, type AgentState } from "../../../workflows/agent-state.ts";
import { accept } from "../../../workflows/inbox.ts";
import {
  afterAnswer,
  afterOverflow,
  callGroups,
  compactionDue,
  fitsNow,
  pruneComesFirst,
} from "../../../workflows/loop-policy.ts";

const budget = budgetFor(100_000, { triggerRatio: 0.9, maxOutputTokens: 4_000 });
const policy = { budget } as RunPolicy;

function using(used: number): AgentState {
  return { ...createState({}), context: { used, estimated: false, prunable: 0 } };
}

const answer = (finish: string, calls = 0) =>
  ({
    kind: "answered",
    calls: Array.from({ length: calls }, () => ({ name: "bash", about: "ls" })),
    finish,
    usage: { input: 1, output: 1, cached: 0, reasoning: 0 },
    context: { used: 0, estimated: false, prunable: 0 },
    epoch: 1,
  }) as const;
const applyAnswer = (state: AgentState) => applyStep(state, { ...answer("stop"), context: state.context });

const item = (id: string, text: string) => ({ id, queuedAt: "", parts: [{ type: "text" as const, text }] });

describe("old results", () => {
  const small = { ...budgetFor(32_000, { triggerRatio: 0.8 }), pruneFirst: pruneFirstFor(32_000) };
  const smallPolicy = { budget: small } as RunPolicy;
  const prunable = small.pruneProtectTokens + 12_000;
  const filled = (used: number): AgentState => ({
    ...using(used),
    context: { used, estimated: false, prunable },
  });
  const threshold = { trigger: "threshold" } as const;
  const overflow = { trigger: "overflow" } as const;

  it("are hidden before a summary that is due, and not before one that a person asked for", () => {
    const state = filled(small.triggerTokens);
    expect(pruneComesFirst(state, smallPolicy, threshold)).toBe(true);
    expect(pruneComesFirst(state, smallPolicy, { trigger: "manual" })).toBe(false);
    expect(pruneComesFirst(state, policy, threshold)).toBe(false);
    // A fallback model's requests are not what was counted.
    expect(pruneComesFirst({ ...state, fallback: { index: 1, sinceMs: 0 } }, smallPolicy, threshold)).toBe(
      false,
    );
  });

  it("are hidden if the request does not fit by our count, and not if only the provider says so", () => {
    const state = { ...filled(small.limitTokens + 1), occasion: "smaller" as const };
    state.context = { ...state.context, prunable: small.pruneProtectTokens + 20_000 };
    const smaller = { budget: { ...small, pruneFirst: { smaller: 0.7 } } } as RunPolicy;
    expect(pruneComesFirst(state, smaller, overflow)).toBe(true);
    expect(
      pruneComesFirst(
        { ...state, context: { ...state.context, used: small.limitTokens } },
        smaller,
        overflow,
      ),
    ).toBe(false);
  });

  it("need no summary after that if the request and waiting messages are under the trigger", () => {
    const state = filled(small.triggerTokens - 1);
    expect(fitsNow(state, smallPolicy)).toBe(true);
    accept(state.inbox, item("a", "One more thing."));
    expect(fitsNow(state, smallPolicy)).toBe(false);
  });
});

describe("a compaction", () => {
  it(
    "is due when the full request, with system and tools, reaches the trigger, not before",
    { tags: ["case-2"] },
    () => {
      // Messages take 60 % of the usable tokens; system and tools decide.
      const messages = Math.floor(budget.triggerTokens * (0.6 / 0.9));
      const prefix = budget.triggerTokens - messages;
      const full = (prefixTokens: number) =>
        estimatedNextInput({ newTokens: 0, pureTokens: prefixTokens + messages }).tokens;
      expect(compactionDue(using(full(prefix)), policy)).toEqual({ trigger: "threshold" });
      expect(compactionDue(using(full(prefix - 1)), policy)).toBeUndefined();
      expect(compactionDue(using(messages), policy)).toBeUndefined();
    },
  );

  // Reserves of 11,000 tokens, trigger at 80 % of the rest. A model's input limit is configured as its window.
  it.each([
    [100_000, 32_000, 80_000, true],
    [200_000, 32_000, 110_000, false],
    [100_000, 32_000, 60_000 + 10_000 + 10_000, true],
    [272_000, 128_000, 274_000, true],
    [272_000, 128_000, 200_000, false],
    [200_000, 32_000, 198_000, true],
  ])(
    "in a window of %i tokens with %i of output, %i used: due is %s",
    { tags: ["case-1"] },
    (window, output, used, due) => {
      const figures = budgetFor(window, { triggerRatio: 0.8, maxOutputTokens: output });
      expect(compactionDue(using(used), { budget: figures } as RunPolicy) !== undefined).toBe(due);
    },
  );

  it("is due at its own trigger if a session is resumed with an expired cache, until a step", () => {
    const large = budgetFor(200_000, { triggerRatio: 0.8, returnRatio: 0.4, maxOutputTokens: 4_000 });
    const half = Math.floor(large.triggerTokens / 2);
    const cacheExpired = (used: number): AgentState => ({ ...using(used), occasion: "return" });
    const largePolicy = { budget: large } as RunPolicy;
    expect(compactionDue(using(half), largePolicy)).toBeUndefined();
    expect(compactionDue(cacheExpired(half - 1), largePolicy)).toBeUndefined();
    expect(compactionDue(cacheExpired(half), largePolicy)).toEqual({ trigger: "threshold" });
    // A configuration without summaries has none; without its own trigger, the general one applies.
    expect(compactionDue(cacheExpired(half), { ...largePolicy, autoCompaction: false })).toBeUndefined();
    expect(compactionDue(cacheExpired(budget.triggerTokens - 1), policy)).toBeUndefined();
    const state = cacheExpired(half);
    applyAnswer(state);
    expect(compactionDue(state, largePolicy)).toBeUndefined();
  });

  it("counts the messages that wait", () => {
    const state = using(budget.triggerTokens - 100);
    expect(compactionDue(state, policy)).toBeUndefined();
    accept(state.inbox, item("a", "the quick brown fox jumps over the lazy dog. ".repeat(20)));
    expect(compactionDue(state, policy)).toEqual({ trigger: "threshold" });
  });

  it("never follows another without a step between, however full the window", { tags: ["case-10"] }, () => {
    const state = using(budget.triggerTokens * 2);
    applyCompaction(state, { kind: "failed", reason: "inflated", context: state.context });
    expect(compactionDue(state, policy)).toBeUndefined();
    applyAnswer(state);
    expect(compactionDue(state, policy)).toEqual({ trigger: "threshold" });
  });

  it("sends no model request after three failures, until one succeeds", { tags: ["case-7"] }, () => {
    const state = using(budget.triggerTokens);
    const failure: CompactionFacts = { kind: "failed", reason: "inflated", context: state.context };
    for (let time = 0; time < 3; time++) {
      state.compaction.isFresh = false;
      expect(compactionDue(state, policy)).toEqual({ trigger: "threshold" });
      applyCompaction(state, failure);
    }
    state.compaction.isFresh = false;
    expect(compactionDue(state, policy)).toEqual({ trigger: "threshold", deterministic: true });
    const { context } = state;
    applyCompaction(state, { kind: "compacted", round: 4, before: 90_000, after: 20_000, context });
    state.compaction.isFresh = false;
    expect(compactionDue(state, policy)).toEqual({ trigger: "threshold" });
  });

  it("pauses if every step needs another, and is retried after 20 steps", () => {
    const state = using(budget.triggerTokens);
    const { context } = state;
    const breaking = { ...policy, maxFutileRounds: 3 };
    const rounds: number[] = [];
    for (let step = 1; step <= 50; step += 1) {
      if (compactionDue(state, breaking)) {
        rounds.push(step);
        applyCompaction(state, {
          kind: "compacted",
          round: rounds.length,
          before: 9_000,
          after: 8_000,
          context,
        });
      }
      applyAnswer(state);
    }
    expect(rounds).toEqual([1, 2, 3, 4, 24, 25, 45, 46]);
    state.compaction.request = {};
    expect(compactionDue(state, breaking)).toEqual({ trigger: "manual" });
  });

  it("requested twice before a boundary is one, with the newest focus", { tags: ["case-29"] }, () => {
    const state = using(0);
    state.compaction.request = { focus: "the ports" };
    state.compaction.request = { focus: "the dates" };
    expect(compactionDue(state, policy)).toEqual({ trigger: "manual", focus: "the dates" });
    state.compaction.request = undefined;
    expect(compactionDue(state, policy)).toBeUndefined();
  });

  it(
    "after one overflow is ordinary, after two a stronger one, after three none",
    { tags: ["case-11"] },
    () => {
      expect([1, 2, 3].map((overflows) => afterOverflow(overflows, policy))).toEqual([
        { trigger: "overflow" },
        { trigger: "overflow", deterministic: true },
        undefined,
      ]);
    },
  );
});

it(
  "compaction switched off allows only a person's request to start one",
  { tags: ["case-1", "case-13"] },
  () => {
    const off = { ...policy, autoCompaction: false };
    const state = using(budget.triggerTokens * 2);
    expect(compactionDue(state, off)).toBeUndefined();
    expect(afterOverflow(1, off)).toBeUndefined();
    state.compaction.request = {};
    expect(compactionDue(state, off)).toEqual({ trigger: "manual" });
  },
);

describe("an answer", () => {
  it.each([
    ["stop", 1, "run tools"],
    ["other", 2, "run tools"],
    ["length", 1, "run tools"],
    ["content-filter", 1, "run tools"],
    ["stop", 0, "completed"],
    ["other", 0, "unfinished"],
    ["error", 0, "unfinished"],
    ["length", 0, "again"],
    ["content-filter", 0, "failed"],
  ])("that ends with %s and %i calls means: %s", { tags: ["case-32"] }, (finish, calls, kind) => {
    expect(afterAnswer(createState({}), answer(finish, calls), {}).kind).toBe(kind);
  });

  it("is not the last while a message waits", { tags: ["case-22", "case-32"] }, () => {
    const state = createState({});
    accept(state.inbox, { id: "a", parts: [{ type: "text", text: "one more" }], queuedAt: "" });
    expect(afterAnswer(state, answer("stop"), {}).kind).toBe("again");
  });
});

describe("the calls of a step", () => {
  const call = (name: string, alone = false) => ({
    name,
    about: "",
    alone: alone ? (true as const) : undefined,
  });
  const groups = (...calls: ReturnType<typeof call>[]) =>
    callGroups(calls).map((group) => group.map(([{ name }, index]) => `${index} ${name}`));

  it("run at once except those that run alone, in the order of the answer", () => {
    expect(groups(call("read"), call("grep"), call("bash", true), call("read"), call("edit", true))).toEqual([
      ["0 read", "1 grep"],
      ["2 bash"],
      ["3 read"],
      ["4 edit"],
    ]);
    expect(groups(call("bash"), call("edit"))).toEqual([["0 bash", "1 edit"]]);
    expect(groups(call("bash", true), call("bash", true))).toEqual([["0 bash"], ["1 bash"]]);
    expect(groups()).toEqual([]);
  });
});
