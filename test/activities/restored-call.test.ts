/** Calls whose rows are put back to before their claim, as by a restore of an older copy: nothing runs twice. */
import { MockActivityEnvironment } from "@temporalio/testing";
import { DefaultLogger } from "@temporalio/worker";
import { and, eq } from "drizzle-orm";
import { expect, it } from "vitest";
import { z } from "zod";
import { toolCalls } from "../../activities/store/schema/index.ts";
import { defineTool } from "../../activities/tools/own/define-tool.ts";
import { parseOwnTools } from "../../activities/tools/own/own-tools.ts";
import { startDirectAgent } from "../support/direct-agent.ts";
import { call, scriptedModel } from "../support/scripted-model.ts";
import { resultTexts } from "../support/stored.ts";
import { useDatabase } from "../support/test-database.ts";

const database = useDatabase(4);
const at = { step: 1, index: 0 };

/** A session whose model has called a tool of the operator. @param during what happens while the tool runs */
async function calling(during: (id: string) => Promise<void>) {
  let runs = 0;
  const ownTools = parseOwnTools([
    defineTool({
      name: "pay",
      description: "Pays.",
      input: z.object({}),
      run: async (_input, { sessionId }) => {
        runs += 1;
        await during(sessionId);
        return "paid";
      },
    }),
  ]);
  const agent = await startDirectAgent(database, scriptedModel().answers(call("pay", {})).says("Done."));
  Object.assign(agent.deps, { ownTools });
  await agent.perform("openSession", { chain: agent.runId });
  await agent.perform("modelStep", { step: 1 });
  return { agent, runs: () => runs };
}

const setRow = (id: string, to: Partial<typeof toolCalls.$inferInsert>) =>
  database.store.db
    .update(toolCalls)
    .set(to)
    .where(and(eq(toolCalls.sessionId, id), eq(toolCalls.step, 1)));
const unclaimed = { status: "pending", fence: 0, startedAt: null, container: null };

it("a result whose claim is gone when it comes is kept, and the call is not repeated", async () => {
  const { agent, runs } = await calling(async (id) => void (await setRow(id, unclaimed)));
  expect(await agent.perform("runTool", at)).toMatchObject({ outcome: "completed" });
  expect(await agent.perform("runTool", at, { attempt: 2 })).toMatchObject({ outcome: "completed" });
  expect(await resultTexts(database.store, agent.id)).toEqual(["paid"]);
  expect(runs()).toBe(1);
});

it.each([
  ["of the operator", null, /^It is not known how this call of pay ended/],
  ["of an MCP server", "far", /^The record that this call had begun is lost/],
])(
  "a call %s that an earlier attempt claimed ends as unknown, also if its row is older",
  async (_of, mcpServer, text) => {
    // The attempt fails after the tool has run: another one has the row.
    const { agent, runs } = await calling(async (id) => void (await setRow(id, { fence: 7 })));
    const details: unknown[] = [];
    const first = agent.environment(1);
    first.on("heartbeat", (given: unknown) => details.push(given));
    const failed = agent.perform("runTool", at, { environment: first });
    await expect(failed).rejects.toMatchObject({ type: "CallTaken" });
    await setRow(agent.id, { ...unclaimed, mcpServer });
    const second = new MockActivityEnvironment(
      {
        attempt: 2,
        workflowExecution: { workflowId: agent.id, runId: agent.runId },
        heartbeatDetails: details.at(-1),
      },
      { logger: new DefaultLogger("ERROR") },
    );
    const facts = await agent.perform("runTool", at, { environment: second });
    expect(facts).toMatchObject({ outcome: "unknown" });
    expect((await resultTexts(database.store, agent.id))[0]).toMatch(text);
    expect(runs()).toBe(1);
  },
);

it("a call is not made again if its worker died before a heartbeat and its row is older", async () => {
  const begun = Promise.withResolvers<void>();
  const { agent, runs } = await calling(() => {
    begun.resolve();
    return new Promise(() => undefined);
  });
  const details: unknown[] = [];
  const first = agent.environment(1);
  first.on("heartbeat", (given: unknown) => details.push(given));
  agent.perform("runTool", at, { environment: first }).catch(() => undefined);
  await begun.promise;
  // Known before the effect begins.
  expect(details).toMatchObject([{ claimed: true }]);
  await setRow(agent.id, unclaimed);
  const second = new MockActivityEnvironment(
    {
      attempt: 2,
      workflowExecution: { workflowId: agent.id, runId: agent.runId },
      heartbeatDetails: details.at(-1),
    },
    { logger: new DefaultLogger("ERROR") },
  );
  const facts = await agent.perform("runTool", at, { environment: second });
  expect(facts).toMatchObject({ outcome: "unknown" });
  expect(runs()).toBe(1);
});

it("a call that no earlier attempt had claimed runs in a later attempt", async () => {
  const { agent, runs } = await calling(() => Promise.resolve());
  expect(await agent.perform("runTool", at, { attempt: 2 })).toMatchObject({ outcome: "completed" });
  expect(runs()).toBe(1);
});
