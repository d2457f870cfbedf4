/** An attempt's number is neither a clock nor a sign that nothing was done yet. */
import { MockActivityEnvironment } from "@temporalio/testing";
import { eq } from "drizzle-orm";
import { expect, it } from "vitest";
import { events } from "../../activities/store/schema/index.ts";
import { startDirectAgent } from "../support/direct-agent.ts";
import { scriptedModel } from "../support/scripted-model.ts";
import { useDatabase } from "../support/test-database.ts";

const database = useDatabase(4);

/** An attempt of an activity that the workflow asked for so long before. */
const attempt = (id: string, number: number, agoMs = 0) =>
  new MockActivityEnvironment({
    attempt: number,
    scheduledTimestampMs: 1,
    currentAttemptScheduledTimestampMs: 1 + agoMs,
    workflowExecution: { workflowId: id, runId: "run-1" },
  });
const opening = { chain: "run-1" };

it("the sandbox of a waiting session is parked at its time, whichever attempt comes", async () => {
  const agent = await startDirectAgent(database, scriptedModel());
  await agent.perform("openSession", opening);
  const afterMs = 3_600_000;
  const park = (number: number, agoMs: number) =>
    agent.perform("parkSandbox", { step: 0, afterMs }, { environment: attempt(agent.id, number, agoMs) });
  for (const number of [1, 2, 9])
    await expect(park(number, 1_000)).rejects.toMatchObject({ type: "NotYetDue" });
  await expect(park(1, afterMs + 1)).resolves.toMatchObject({ changed: expect.any(Number) });
});

it("the start of a run is announced once, also if its first attempt was lost", async () => {
  const agent = await startDirectAgent(database, scriptedModel());
  for (const number of [2, 3, 1])
    await agent.perform("openSession", opening, { environment: attempt(agent.id, number) });
  const seen = await database.store.db.select().from(events).where(eq(events.sessionId, agent.id));
  expect(seen.filter(({ type }) => type === "session:started")).toHaveLength(1);
});
