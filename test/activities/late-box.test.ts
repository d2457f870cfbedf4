import { afterAll, beforeAll, expect, it, onTestFinished } from "vitest";
import { startDirectAgent } from "../support/direct-agent.ts";
import { scriptedModel } from "../support/scripted-model.ts";
import { createTestDatabase, type TestDatabase } from "../support/test-database.ts";

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase(5);
});
afterAll(() => database.drop());

it("an attempt that goes on when its session has ended makes no box; the session's next run does [R20]", async () => {
  const agent = await startDirectAgent(database, scriptedModel().says("Done."));
  onTestFinished(() => agent.close());
  await agent.step(1);
  await agent.perform("closeSandbox", { step: 1 });
  await agent.perform("closeSession", { step: 1, status: "completed" });
  await expect(agent.perform("openSandbox", { step: 1 })).rejects.toMatchObject({ type: "Superseded" });
  expect(await agent.events()).not.toContain("sandbox:created");
  agent.runId = "run-2";
  await agent.perform("openSandbox", { step: 2 });
  expect(await agent.events()).toContain("sandbox:created");
});
