/** One calculation of the next request's size: what triggers, what is shown, what is listed, what is logged. */
import { MockActivityEnvironment } from "@temporalio/testing";
import { DefaultLogger, type LogEntry } from "@temporalio/worker";
import { describe, expect, it } from "vitest";
import { sessionSizes } from "../../activities/context/context-size.ts";
import { recentCalls } from "../../activities/store/reading.ts";
import { readContext, type ContextReport } from "../../activities/context/context-report.ts";
import { contextBreakdown } from "../../client/commands/context.ts";
import {
  applyCompaction,
  applyOpened,
  applyStep,
  applyToolResult,
  createState,
} from "../../workflows/agent-state.ts";
import { startDirectAgent, type DirectAgent } from "../support/direct-agent.ts";
import { mixedText } from "../support/mixed-text.ts";
import { call, countTokens, text, type Turn } from "../support/scripted-model.ts";
import { useDatabase } from "../support/test-database.ts";

const database = useDatabase(5);

const plain = (_look: string, words: string) => words;

async function shown({ id }: DirectAgent): Promise<ContextReport> {
  const report = await readContext(database.store.db, id);
  if (report === undefined) throw new Error(`no session ${id}`);
  return report;
}

/** Reads a piece of a file at each step; the server counts a fifth more than we do. */
async function startReader(steps: number): Promise<DirectAgent> {
  let step = 0;
  const script: Turn = () => {
    step += 1;
    const read = () => call("read_file", { path: "big.txt", offset: 1 + step * 40, limit: 60 });
    return { parts: step < steps ? [text(`Step ${step}.`), read(), read()] : [text("It is done.")] };
  };
  const agent = await startDirectAgent(database, script, {
    countTokens: (value) => Math.ceil(countTokens(value) * 1.2),
    config: { model: "openai/counts-more", contextWindow: 128_000 },
  });
  await agent.sandbox.files.write("big.txt", Buffer.from(mixedText(3, 2_000)));
  return agent;
}

describe("the size of the next request", () => {
  it("is one figure for trigger, display, list and log, at every moment of a session", async () => {
    const agent = await startReader(6);
    const state = createState({});
    const session = await agent.perform("openSession", { chain: agent.runId });
    applyOpened(state, session);
    const foretold: number[] = [];
    const compare = async (moment: string) => {
      const { used, estimated, basis } = await shown(agent);
      const listed = (await sessionSizes(database.store.db, [agent.id])).get(agent.id);
      // Two roundings of what came since the bill may lie between them.
      expect(Math.abs(state.context.used - used), moment).toBeLessThanOrEqual(1);
      expect(listed, moment).toEqual({ tokens: used, estimated });
      expect(state.context.estimated, moment).toBe(estimated);
      if (basis !== null) expect(basis.lastInput + basis.lastOutput + basis.newSince, moment).toBe(used);
      expect(basis === null, moment).toBe(estimated);
      return used;
    };
    foretold.push(await compare("before the first step"));
    for (let step = 1; step <= 6; step += 1) {
      const answer = await agent.perform("modelStep", { step });
      applyStep(state, answer);
      await compare(`after the answer of step ${step}`);
      if (answer.kind !== "answered") throw new Error(answer.kind);
      for (const [index, made] of answer.calls.entries())
        applyToolResult(state, made, await agent.perform("runTool", { step, index }));
      if (answer.calls.length > 0) foretold.push(await compare(`after the tools of step ${step}`));
    }
    // What a display said before a request is what the log compares its bill with.
    const calls = (await recentCalls(database.store.db, agent.id, 10)).toReversed();
    expect(calls.map(({ estimated }) => estimated)).toEqual(foretold);
    applyCompaction(
      state,
      await agent.compact({ step: 7, round: 1, trigger: "manual", deterministic: true }),
    );
    await compare("after a compaction");
    expect((await shown(agent)).basis).toBeNull();
  });

  it("is shown with its calculation, each part's origin and the reasoning in it", async () => {
    const agent = await startDirectAgent(database, () => ({
      parts: [text("Done.")],
      usage: { input: 5_000, output: 700, reasoning: 300 },
    }));
    expect(contextBreakdown(await shown(agent), plain)).toContain("(estimated) from the text in view");
    await agent.step(1);
    const report = await shown(agent);
    expect(report.basis).toEqual({ lastInput: 5_000, lastOutput: 700, lastReasoning: 300, newSince: 0 });
    const words = contextBreakdown(report, plain);
    expect(words).toContain(
      "basis: last input 5000 + last output 700 (300 of it reasoning) + new since 0 (estimated) = 5700",
    );
    expect(words).toMatch(
      /system prompt .*\(estimated\)\n.*tools .*\(estimated\)\n.*messages .*\(back-calculated\)/,
    );
    const { system, tools, messages, free, outputBuffer } = report.parts;
    expect(system + tools + messages).toBe(5_700);
    expect(system + tools + messages + free + outputBuffer).toBe(report.window);
    expect(report.capped).toEqual([]);
  });

  it("comes with a warning if system and tools are estimated above the whole of it", async () => {
    // Less than system and tools by our count, and more than half of the request: such a bill is believed.
    const agent = await startDirectAgent(database, () => ({
      parts: [text("Done.")],
      usage: { input: 2_400, output: 10 },
    }));
    await agent.step(1);
    const report = await shown(agent);
    expect(report.parts.messages).toBe(0);
    expect(report.capped).toEqual([{ part: "messages", wanted: expect.any(Number) }]);
    expect(contextBreakdown(report, plain)).toMatch(/! messages come out at -\d+ and are shown as 0/);
  });

  it("is estimated, not 0, if an answer came without a bill", async () => {
    const agent = await startDirectAgent(database, () => ({ parts: [text("Done.")], usage: null }));
    await agent.step(1);
    const report = await shown(agent);
    expect(report.estimated).toBe(true);
    const [response] = await agent.dataOf("llm:response");
    expect(response).toMatchObject({ contextUsed: report.used, contextEstimated: true });
    expect(report.used).toBeGreaterThan(1_000);
  });
});

it("the worker's log has each request's estimate, its bill and the error between them", async () => {
  const agent = await startDirectAgent(database, () => ({
    parts: [text("Done.")],
    usage: { input: 4_000, output: 50, cached: 1_000 },
  }));
  const lines: LogEntry[] = [];
  const environment = new MockActivityEnvironment(
    { attempt: 1, workflowExecution: { workflowId: agent.id, runId: agent.runId } },
    { logger: new DefaultLogger("INFO", (entry) => lines.push(entry)) },
  );
  const { used } = await shown(agent);
  await agent.perform("modelStep", { step: 1 }, { environment });
  const calls = lines.filter(({ message }) => message === "model call").map(({ meta }) => meta);
  expect(calls).toEqual([
    expect.objectContaining({
      session: agent.id,
      step: 1,
      purpose: "step",
      status: "kept",
      estimatedInput: used,
      input: 4_000,
      cached: 1_000,
      output: 50,
      errorPercent: Math.round((1_000 * (used - 4_000)) / 4_000) / 10,
    }),
  ]);
});
