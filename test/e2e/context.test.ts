import { describe, expect, it } from "vitest";
import type { RunConfig } from "../../activities/config/agent-config.ts";
import { checkSession } from "../support/checker/check-session.ts";
import { type RunningSession, useAgent } from "../support/agent-harness.ts";
import { call } from "../support/scripted-model.ts";
import {
  isSummaryRequest,
  longSession,
  says,
  wordsOf,
  wordsAsked,
  noisySteps,
} from "../support/scripted-summaries.ts";
import { resultTexts, roundsOf } from "../support/stored.ts";

const agent = useAgent();

const TASK = "Build the importer, and never touch the folder legacy.";
const inWindow = (contextWindow: number, more: Partial<RunConfig> = {}) => ({
  config: { contextWindow, maxOutput: 1_000, ...more },
});
const serving = (window: number) => ({ "gpt-4o": { window, maxOutput: 1_000 } });
const stepRequests = ({ model }: RunningSession) =>
  model.requests.filter((request) => !isSummaryRequest(request));

describe("a task longer than its window", () => {
  it("is compacted repeatedly without a refused request, and keeps task and facts", async () => {
    const script = longSession({
      steps: [
        { parts: [call("bash", { command: "echo FACT-1 is plum" })] },
        ...noisySteps(2, 38),
        { parts: [call("search_history", { query: "FACT-1 is" })] },
        says("The importer is built."),
      ],
    });
    const session = await agent.start(script, {
      task: TASK,
      served: serving(16_000),
      ...inWindow(16_000),
    });
    expect(await session.handle.result()).toMatchObject({ status: "completed", steps: 40 });
    expect(session.model.log.map((served) => served.status).filter((status) => status !== 200)).toEqual([]);
    const rounds = await roundsOf(agent.database.store, session.id);
    expect(rounds.length).toBeGreaterThanOrEqual(3);
    expect(rounds.map((row) => row.round)).toEqual(rounds.map((_, place) => place + 1));
    for (const row of rounds) {
      expect(row.status).toBe("compacted");
      expect(row.tokensAfter).toBeLessThan(row.tokensBefore);
      expect(row.summaryContent).toContain(`Session Summary (Compaction Round ${row.round})`);
      expect(row.summaryContent).toContain("FACT-1 is plum");
    }
    for (const request of stepRequests(session)) expect(wordsOf(request)).toContain(TASK);
    const last = wordsAsked({ requests: stepRequests(session) });
    expect(last).toContain(`Compaction Round ${rounds.length})`);
    expect(last).not.toContain("step 2 line 1 ");
    expect((await resultTexts(agent.database.store, session.id)).at(-1)).toContain("FACT-1 is plum");
    await checkSession(agent, session);
  });
});

describe("a compaction that a person requests", () => {
  it("runs before the next step, and keeps the facts that they name in view", async () => {
    const script = longSession({
      steps: [
        ...noisySteps(1, 6),
        { parts: [call("bash", { command: "sleep 3; echo slept" })] },
        says("Done."),
      ],
    });
    const session = await agent.start(script, {
      task: TASK,
      config: { context: { options: { keepMessages: 2 } } },
    });
    await session.until("llm:tool-call", (event) => event.data.about.includes("sleep 3"));
    await session.handle.signal("compact", { focus: "the port number" });
    expect(await session.result()).toMatchObject({ status: "completed", steps: 8, rounds: 1 });
    const [round, ...more] = await roundsOf(agent.database.store, session.id);
    expect(more).toEqual([]);
    expect(round).toMatchObject({ status: "compacted", trigger: "manual", step: 8 });
    const asked = session.model.requests.filter(isSummaryRequest);
    expect(asked).toHaveLength(1);
    expect(wordsAsked({ requests: asked })).toContain("the port number");
    const last = wordsAsked({ requests: stepRequests(session) });
    expect(last).toContain("Compaction Round 1)");
    expect(last).toContain("slept");
    await checkSession(agent, session);
  });
});
