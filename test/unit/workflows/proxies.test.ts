/** Every activity's options [A25]. */
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { sources } from "../../architecture/sources.ts";
import { activityOptions, boundedSummary, OPEN_SESSION_OPTIONS } from "../../../workflows/proxies.ts";

const policy = { timeouts: { modelMs: 600_000, toolMs: 660_000 }, taskQueues: { models: "m", admin: "a" } };
const options = { openSession: OPEN_SESSION_OPTIONS, ...activityOptions(policy, "host-1") };

describe("each activity", () => {
  it.each(Object.entries(options))(
    "%s has its cancellation type, heartbeat, timeout and bounded attempts said",
    { tags: ["A25"] },
    (name, given) => {
      expect(given.cancellationType).toBe("WAIT_CANCELLATION_COMPLETED");
      expect(given.heartbeatTimeout).toBe(30_000);
      expect(given.startToCloseTimeout).toBeGreaterThan(0);
      expect(given.retry.maximumAttempts).toBeGreaterThan(0);
      expect(given.retry.maximumAttempts).toBeLessThanOrEqual(
        // They count their own attempts, and may have to wait for their model's limits.
        ["modelStep", "summarize", "watchSandbox"].includes(name) ? 100_000 : 1_440,
      );
      expect(given.retry.maximumInterval).toBeLessThanOrEqual(120_000);
    },
  );

  it("of the contract has options, and is sent to the queue of its role", { tags: ["A25"] }, () => {
    const contract = readFileSync(
      new URL("../../../activities/contract/activities.ts", import.meta.url),
      "utf8",
    );
    const [, body = ""] = /interface AgentActivities \{([\s\S]*?)\n\}/.exec(contract) ?? [];
    const names = [...body.matchAll(/^ {2}(\w+)\(/gm)].map(([, name]) => name);
    expect(new Set(Object.keys(options))).toEqual(new Set(names));
    const queues = Object.entries(options).map(([name, given]) => [
      name,
      "taskQueue" in given ? given.taskQueue : undefined,
    ]);
    expect(Object.fromEntries(queues)).toEqual({
      askPerson: "a",
      askBudget: "a",
      settleBudget: "a",
      settleQuestion: "a",
      markWaiting: "a",
      notify: "a",
      parkSandbox: "host-1",
      openSession: undefined,
      fetchRepository: "host-1",
      setUpSandbox: "host-1",
      verifyWork: "host-1",
      publish: "host-1",
      refreshCheckout: "host-1",
      openSandbox: "host-1",
      modelStep: "m",
      runTool: "host-1",
      openDelegate: "host-1",
      settleDelegate: "host-1",
      storeGuidance: "a",
      summarize: "m",
      undoCompaction: "a",
      prune: "a",
      saveWorkspace: "host-1",
      checkCommands: "host-1",
      beginWait: "a",
      endWait: "a",
      watchSandbox: "host-1",
      closeSandbox: "host-1",
      closeSession: "a",
    });
  });

  it("uses the policy's heartbeat timeout if it has one", () => {
    const quick = activityOptions(
      { ...policy, timeouts: { ...policy.timeouts, heartbeatMs: 2_000 } },
      undefined,
    );
    for (const given of Object.values(quick)) expect(given.heartbeatTimeout).toBe(2_000);
  });
});

it("no other file of the workflow makes a proxy of activities", { tags: ["A25"] }, () => {
  const makers = sources(/^workflows\//).filter(({ text }) =>
    /proxy(Local)?Activities|scheduleActivity/.test(text),
  );
  expect(makers.map(({ path }) => path)).toEqual(["workflows/proxies.ts"]);
});

describe("how often an activity is tried", () => {
  /** Temporal's count, which deferred attempts raise, or a number of its own. */
  const OWN_COUNT = /\.attempt\s*[-<>]|\btries\s*[<>]=?\s*(?=\d)|\bretry\((?=\d|[A-Z_]+_ATTEMPTS\b)/g;

  it("is said in one place, which counts no deferred attempt", () => {
    const counted = sources(/^(activities|workflows)\//)
      // What became of the attempts before: there Temporal's count is meant.
      .filter(({ path }) => !/^activities\/runtime\/(lost-attempts|activity-scope)\.ts$/.test(path))
      .flatMap(({ path, text }) => (text.match(OWN_COUNT) ?? []).map((count) => `${path}: ${count}`));
    expect(counted).toEqual([]);
  });

  it.each([
    "if (scope.attempt < ATTEMPTS)",
    "const attempt = scope.attempt - scope.waits;",
    "scope.tries >= 5",
    "retry: retry(20)",
  ])("finds %s", (text) => {
    expect(text.match(OWN_COUNT)).not.toBeNull();
  });
});

it("a summary has at most 300 bytes, and no split character", { tags: ["A25"] }, () => {
  expect(boundedSummary("step 1 · bash: ls")).toBe("step 1 · bash: ls");
  for (const char of ["a", "ü", "字", "🚀"]) {
    const cut = boundedSummary(`step 1 · bash: ${char.repeat(400)}`);
    expect(cut.isWellFormed()).toBe(true);
    expect(cut.endsWith("…")).toBe(true);
    expect(Array.from(cut).length).toBeLessThanOrEqual(90);
    expect(Buffer.byteLength(JSON.stringify(cut))).toBeLessThanOrEqual(300);
  }
});
