/** What the end of a session tells. */
import { afterAll, beforeAll, expect, it, onTestFinished } from "vitest";
import { readEvents } from "../../activities/store/events.ts";
import { startDirectAgent } from "../support/direct-agent.ts";
import { scriptedModel } from "../support/scripted-model.ts";
import { createTestDatabase, type TestDatabase } from "../support/test-database.ts";

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase(5);
});
afterAll(() => database.drop());

it("a box that could not be closed is told to watchers before the end, once, and bounded [invariant 14]", async () => {
  const agent = await startDirectAgent(database, scriptedModel().says("Done."));
  onTestFinished(() => agent.close());
  await agent.step(1);
  const input = { step: 1, status: "completed", notClosed: `no answer ${"!".repeat(5_000)}` } as const;
  await agent.perform("closeSession", input);
  await agent.perform("closeSession", input, { attempt: 2 });
  const events = await readEvents(database.store.db, agent.id, 0, 1_000);
  const ends = events.filter(({ type }) => type === "sandbox:not-closed" || type === "session:ended");
  expect(ends.map(({ type }) => type)).toEqual(["sandbox:not-closed", "session:ended"]);
  const [{ message }] = ends.map(({ data }) => data) as [{ message: string }];
  expect(message).toMatch(/^The sandbox was not closed \(no answer !+\): the files are kept as last saved/);
  expect(message.length).toBeLessThan(1_200);
});
