/** A worker that still runs when a deploy has changed the tables under it. */
import { afterEach, beforeEach, expect, it } from "vitest";
import { startDirectAgent, type DirectAgent } from "../support/direct-agent.ts";
import { scriptedModel } from "../support/scripted-model.ts";
import { createTestDatabase, type TestDatabase } from "../support/test-database.ts";

let database: TestDatabase;
let agent: DirectAgent;
beforeEach(async () => {
  database = await createTestDatabase(5);
  agent = await startDirectAgent(database, scriptedModel().says("Done."));
});
const renameColumn = () => database.store.pool.query("alter table sessions rename column task to task_text");
afterEach(() => database.drop());

it("ends the run if the tables are those it knows: the fault is in the code", async () => {
  await renameColumn();
  await expect(agent.step(1)).rejects.toMatchObject({ type: "DatabaseRejected", nonRetryable: true });
});

it("hands on a session with a setting that it does not know, and names the setting", async () => {
  await database.store.pool.query(
    `update sessions set config = jsonb_set(config::jsonb, '{sandbox,network}', '"by-moonlight"')::json`,
  );
  await expect(agent.step(1)).rejects.toMatchObject({
    type: "WorkerOutdated",
    nonRetryable: false,
    message: expect.stringMatching(/what session direct-\w+ has for sandbox\.network; a newer worker/),
  });
});
