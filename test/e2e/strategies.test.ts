/**
 * Each compaction strategy in a real session, and people's actions during a compaction. Sessions mostly wait for
 * their sandboxes and for Temporal, so they run in parallel.
 */
import { describe, expect, it } from "vitest";
import type { RunConfig } from "../../activities/config/agent-config.ts";
import { strategies, strategyNames, type StrategyName } from "../../activities/config/strategies.ts";
import { type RunningSession, useAgent } from "../support/agent-harness.ts";
import { eventually } from "../support/eventually.ts";
import { checkSession } from "../support/checker/check-session.ts";
import { call, text } from "../support/scripted-model.ts";
import {
  goodSummary,
  isSummaryRequest,
  longSession,
  says,
  wordsOf,
  wordsAsked,
  noisySteps,
} from "../support/scripted-summaries.ts";
import { roundsOf, transcriptOf } from "../support/stored.ts";

const agent = useAgent();

const TASK = "Build the importer, and never touch the folder legacy.";
const WINDOW = 16_000;
const STEPS = 18;

const inSmallWindow = (strategy: StrategyName, options: RunConfig["context"]["options"] = {}) => ({
  task: TASK,
  served: { "gpt-4o": { window: WINDOW, maxOutput: 1_000 } },
  config: { contextWindow: WINDOW, maxOutput: 1_000, context: { strategy, options } },
});
const steps = (from: number, to: number) => noisySteps(from, to, 100);

/** The distinguishing effect of each. */
describe.concurrent("a task longer than its window", () => {
  it.each(strategyNames)(
    "goes to its end with %s: no request refused, the task always in view",
    async (strategy) => {
      const script = longSession({
        steps: [
          { parts: [call("bash", { command: "echo FACT-1 is plum" })] },
          ...steps(2, STEPS),
          says("Done."),
        ],
      });
      // Otherwise hiding old results is enough in so small a window.
      const session = await agent.start(script, inSmallWindow(strategy, { prune: "never" }));
      expect(await session.handle.result()).toMatchObject({ status: "completed", steps: STEPS + 1 });
      expect(session.model.log.filter((served) => served.status !== 200)).toEqual([]);
      const rounds = await roundsOf(agent.database.store, session.id);
      // It waits until the window is full.
      expect(rounds.length).toBeGreaterThanOrEqual(strategy === "reactive-overflow" ? 1 : 2);
      for (const round of rounds) {
        expect(round).toMatchObject({ status: "compacted", strategy });
        expect(round.tokensAfter).toBeLessThan(round.tokensBefore);
      }
      const asked = session.model.requests.filter((request) => !isSummaryRequest(request));
      expect(asked).toHaveLength(STEPS + 1);
      for (const request of asked) expect(wordsOf(request)).toContain(TASK);
      expect(session.model.requests.length - asked.length === 0).toBe(strategies[strategy].writer === "code");
      // What each leaves: the beginning, the newest share, or a summary of all that is old.
      const words = wordsAsked({ requests: asked });
      expect(words).toContain(`Compaction Round ${rounds.length})`);
      expect(words.includes("echo FACT-1 is plum")).toBe(strategy === "middle-removal");
      if (strategy === "proactive-threshold") expect(rounds[0]?.tokensBefore).toBeLessThan(WINDOW * 0.55);
      await checkSession(agent, session);
    },
  );
});

describe.concurrent("during a compaction", () => {
  const slowSummary = (hold: "hang" | number) => ({
    steps: [...steps(1, 5), says("All is read.")],
    summary: (request: Parameters<typeof goodSummary>[0]) =>
      hold === "hang"
        ? { parts: [text("## Completed"), { type: "hang" as const }] }
        : { ...goodSummary(request), beforeHeaders: hold },
  });
  // So early that there is nothing to prune yet.
  const EARLY = { trigger: 0.4, keepMessages: 2 };
  const untilSummarising = ({ model }: RunningSession) =>
    eventually("a request for a summary", () => model.requests.some(isSummaryRequest), 120_000);

  it(
    "a message is accepted and delivered once, after it, and the next one in its own turn",
    { tags: ["case-20"] },
    async () => {
      const session = await agent.start(
        longSession(slowSummary(3_000)),
        inSmallWindow("threshold-rounds", EARLY),
      );
      await untilSummarising(session);
      await session.handle.signal("guidance", { id: "mid", text: "use quay 7 instead" });
      expect(await session.result()).toMatchObject({ status: "completed" });
      const [round] = await roundsOf(agent.database.store, session.id);
      expect(round?.status).toBe("compacted");
      const said = session.model.requests
        .filter((request) => !isSummaryRequest(request))
        .map((request) => wordsOf(request).split("use quay 7 instead").length - 1);
      expect(said.filter((times) => times > 1)).toEqual([]);
      expect(said.at(-1)).toBe(1);
      await checkSession(agent, session);
    },
  );

  it(
    "a cancel ends the run without another summary or a row, and the sandbox is gone",
    { tags: ["case-14"] },
    async () => {
      const session = await agent.start(
        longSession(slowSummary("hang")),
        inSmallWindow("threshold-rounds", EARLY),
      );
      await untilSummarising(session);
      await session.handle.cancel();
      await expect(session.result()).rejects.toThrow();
      expect((await session.handle.describe()).status.name).toBe("CANCELLED");
      expect(await roundsOf(agent.database.store, session.id)).toEqual([]);
      const rows = await transcriptOf(agent.database.store, session.id);
      expect(rows.filter((row) => row.isCompacted || row.kind === "summary")).toEqual([]);
      expect(session.model.requests.filter(isSummaryRequest)).toHaveLength(1);
      await expect(agent.docker.getContainer(`longhaul-${session.id}`).inspect()).rejects.toThrow();
      await checkSession(agent, session);
    },
  );

  it(
    "an interrupt ends it and continues with the message; the transcript is unchanged",
    { tags: ["case-14", "case-23"] },
    async () => {
      let summaries = 0;
      const script = longSession({
        steps: [...steps(1, 5), says("Then I stop reading."), says("All is read.")],
        summary: (request) => (++summaries === 1 ? { parts: [{ type: "hang" }] } : goodSummary(request)),
      });
      const session = await agent.start(script, inSmallWindow("threshold-rounds", EARLY));
      await untilSummarising(session);
      await session.handle.signal("interrupt", { id: "stop", text: "stop reading now" });
      expect(await session.result()).toMatchObject({ status: "completed" });
      expect(session.model.aborts.length).toBeGreaterThanOrEqual(1);
      expect(wordsAsked(session.model)).toContain("stop reading now");
      await checkSession(agent, session, { kills: 1 });
    },
  );
});
