/** What the Web UI shows above all: what is asked, and how it is answered there. */
import { expect, test } from "vitest";
import { budgetText } from "../../../activities/contract/limits.ts";
import { budgetFor } from "../../../activities/config/budget.ts";
import type { RunPolicy } from "../../../activities/contract/run-policy.ts";
import { createState } from "../../../workflows/agent-state.ts";
import type { OpenQuestion } from "../../../workflows/asking.ts";
import { currentDetails } from "../../../workflows/presentation.ts";

const policy: RunPolicy = {
  model: "openai/gpt-4o",
  maxSteps: 500,
  maxCostUsd: 4,
  budget: budgetFor(128_000, { triggerRatio: 0.8 }),
  prune: "auto",
  maxFutileRounds: 3,
  maxHistoryEvents: 3_000,
  timeouts: { modelMs: 1, toolMs: 1 },
  asks: {},
  searchAttributes: false,
  taskQueues: {},
  git: { branch: "longhaul/x", push: "end", pr: "none" },
};
const asked = (question: Pick<OpenQuestion, "id" | "kind" | "text" | "options">): OpenQuestion => ({
  ...question,
  askedAtMs: 0,
  settlement: undefined,
});
const shown = (question: OpenQuestion) =>
  currentDetails({ ...createState({}), costUsd: 5 }, policy, [question]);

test("a question about a limit says what is used up, and that an amount answers it too", () => {
  const details = shown(
    asked({
      id: "s3cost",
      kind: "budget",
      text: budgetText({ limit: "cost", used: 5, of: 4 }),
      options: ["another $4.00", "stop"],
    }),
  );
  expect(details.split("\n").slice(0, 7)).toEqual([
    String.raw`**Limit reached:** This session has cost \$5.00; its limit is \$4.00 \(limits.maxCostUsd\). May it continue?`,
    "",
    String.raw`1. another \$4.00`,
    "2. stop",
    "",
    'To answer, send the signal `answer` with `{"question":"s3cost","option":1}` or `{"question":"s3cost","text":"$2.50"}`',
    "",
  ]);
  // What stands between two of them is drawn as a formula. In code it is not.
  expect(details.replaceAll(/`[^`]*`/g, "")).not.toMatch(/(?<!\\)\$/);
});

test("a call that waits for a person names both answers", () => {
  const details = shown(asked({ id: "s1c0", kind: "approval", text: "bash: git push" }));
  expect(details).toContain("**Approval needed:** bash: git push\n");
  expect(details).toContain(
    '`{"question":"s1c0","action":"allow"}` or `{"question":"s1c0","action":"deny"}`',
  );
});

test("an address in a question is not a link; that of what was delivered is one", () => {
  const details = shown(asked({ id: "q", kind: "ask", text: "Is https://evil.example/a ~right~ <b>?" }));
  expect(details).toContain(String.raw`Is https:\//evil.example/a \~right\~ \<b\>?`);
  const delivered = "pull request https://git.example/team/my_app/pull/7";
  expect(
    currentDetails({ ...createState({}), delivery: { pushedAtMs: 0, last: delivered } }, policy),
  ).toContain("pull request <https://git.example/team/my_app/pull/7>");
});
