/** The client and a Temporal that does not have its namespace: a server that is starting, or a wrong setting. */
import { expect, inject, it } from "vitest";
import { createSession } from "../../activities/store/sessions.ts";
import { retries } from "../../temporal/temporal-client.ts";
import { runConfig } from "../support/agent-harness.ts";
import { startClient } from "../support/program.ts";
import { useDatabase } from "../support/test-database.ts";

/** gRPC's. */
const NOT_FOUND = 5;

const database = useDatabase();

it("retries for a missing namespace, and gives up within the promised time", () => {
  const starting = { code: NOT_FOUND, details: "Namespace default is not found." };
  const tries = [1, 2].map((attempt) => retries.retryableDecider(attempt, starting as never));
  expect(tries).toEqual([true, false]);
  const gone = { code: NOT_FOUND, details: "workflow not found for ID: x" };
  expect(retries.retryableDecider(1, gone as never)).toBe(false);
});

it.each([
  ["say", "hello"],
  ["cancel", undefined],
] as const)("`%s` ends with code 4 and what to do", async (verb, message) => {
  const id = `namespace-${verb}`;
  await createSession(database.store, { id, task: "Wait.", config: runConfig() });
  const client = startClient([verb, id, ...(message === undefined ? [] : [message])], {
    DATABASE_URL: database.url,
    TEMPORAL_ADDRESS: inject("temporalAddress"),
    TEMPORAL_NAMESPACE: "not-there",
  });
  expect((await client.ended).code).toBe(4);
  expect(client.err()).toMatch(/not-there[^]*correct TEMPORAL_NAMESPACE/);
});
