/** What the end of a session reports. */
import { ActivityCancellationDetails } from "@temporalio/common";
import { expect, it } from "vitest";
import { readFigures } from "../../activities/store/reading.ts";
import { recordCall } from "../../activities/store/model-calls.ts";
import { startDirectAgent } from "../support/direct-agent.ts";
import { eventually } from "../support/eventually.ts";
import { call, scriptedModel, text } from "../support/scripted-model.ts";
import { useDatabase } from "../support/test-database.ts";

const database = useDatabase(5);

it(
  "a sandbox that could not be closed is reported to watchers before the end, once",
  { tags: ["invariant-14"] },
  async () => {
    const agent = await startDirectAgent(database, scriptedModel().says("Done."));
    await agent.step(1);
    const input = { step: 1, status: "completed", notClosed: `no answer ${"!".repeat(5_000)}` } as const;
    await agent.perform("closeSession", input);
    await agent.perform("closeSession", input, { attempt: 2 });
    const ends = (await agent.events()).filter((type) => /^(sandbox:not-closed|session:ended)$/.test(type));
    expect(ends).toEqual(["sandbox:not-closed", "session:ended"]);
    const [{ message } = { message: "" }] = await agent.dataOf("sandbox:not-closed");
    expect(message).toMatch(/^The sandbox was not closed \(no answer !+\): the files are kept as last saved/);
    expect(message.length).toBeLessThan(1_200);
  },
);

it("a session is closed with the sums of its calls, its tokens (beyond 2^31) and its dollars", async () => {
  const agent = await startDirectAgent(database, scriptedModel().says("Done."));
  await agent.step(1);
  const input = 2_000_000_000;
  const usage = { input, output: input, cached: input, reasoning: input };
  const bill = {
    sessionId: agent.id,
    epoch: 1,
    attempt: 1,
    purpose: "step",
    model: "openai/gpt-4o",
  } as const;
  for (const step of [2, 3])
    await recordCall(database.store.db, {
      ...bill,
      step,
      status: "kept",
      estimatedInput: 1,
      estimatePure: false,
      usage,
      costUsd: 1.25,
    });
  const closed = await agent.perform("closeSession", { step: 3, status: "completed" });
  for (const sum of [closed.usage.input, closed.usage.output, closed.usage.cached, closed.usage.reasoning])
    expect(sum).toBeGreaterThanOrEqual(2 * input);
  const figures = await readFigures(database.store.db, [agent.id]);
  // The scripted call has no price, so its cost is not stored; those of the two are, and no sum of tokens is priced.
  expect(figures.get(agent.id)?.bill).toMatchObject({ costUsd: 2.5, uncosted: { calls: 1 } });
});

it("calls that the end of a run leaves without a result are reported to watchers, each once", async () => {
  const script = scriptedModel().answers(
    call("bash", { command: "sleep 60" }),
    call("bash", { command: "echo never" }),
  );
  const agent = await startDirectAgent(database, script);
  await agent.perform("modelStep", { step: 1 });
  // The first was begun by a worker that is gone.
  await database.store.pool.query(
    "update tool_calls set status = 'running', started_at = now() - interval '3 seconds' where session_id = $1 and index = 0",
    [agent.id],
  );
  const input = { step: 1, status: "cancelled" } as const;
  await agent.perform("closeSession", input);
  await agent.perform("closeSession", input, { attempt: 2 });
  const results = await agent.dataOf("llm:tool-result");
  expect(results).toEqual([
    expect.objectContaining({ index: 0, name: "bash", outcome: "unknown", exitCode: null }),
    expect.objectContaining({ index: 1, name: "bash", outcome: "interrupted", durationMs: 0 }),
  ]);
  expect(results[0]?.durationMs).toBeGreaterThanOrEqual(2_900);
  expect((await agent.events()).at(-1)).toBe("session:ended");
});

it("what was said before an interrupt is shown to who begins to watch afterwards", async () => {
  const script = scriptedModel().answers(text("Half a sen"), { type: "hang" });
  const agent = await startDirectAgent(database, script);
  const environment = agent.environment();
  const running = agent.perform("modelStep", { step: 1 }, { environment });
  await eventually("its first words", async () => (await agent.events()).includes("llm:chunk"));
  environment.cancel("CANCELLED", new ActivityCancellationDetails({ cancelRequested: true }));
  const facts = await running;
  expect(await agent.dataOf("llm:chunk")).toEqual([]);
  const [response, ...more] = await agent.dataOf("llm:response");
  expect(more).toEqual([]);
  expect(response).toMatchObject({
    content: "Half a sen [interrupted]",
    finish: "interrupted",
    costUsd: null,
    contextUsed: facts.kind === "interrupted" ? facts.context.used : 0,
  });
});
