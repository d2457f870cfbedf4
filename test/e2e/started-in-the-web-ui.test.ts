/** "Start Workflow Like This One" of Temporal's Web UI: it copies a session's input, which is empty. */
import { randomUUID } from "node:crypto";
import { expect, it } from "vitest";
import { sessions } from "../../activities/store/schema/index.ts";
import type { codingAgent } from "../../workflows/index.ts";
import { useAgent } from "../support/agent-harness.ts";
import { scriptedModel } from "../support/scripted-model.ts";

const agent = useAgent();

/** Sends what the Web UI (2.54) sends. Its form has the same id until the person types another one. */
async function startLike(workflowId: string, inputs: readonly string[]) {
  const metadata = { encoding: Buffer.from("json/plain") };
  await agent.client.workflowService.startWorkflowExecution({
    namespace: agent.client.options.namespace,
    workflowId,
    workflowType: { name: "codingAgent" },
    taskQueue: { name: agent.taskQueue },
    requestId: randomUUID(),
    input: { payloads: inputs.map((input) => ({ metadata, data: Buffer.from(input) })) },
    userMetadata: {},
    searchAttributes: null,
  });
  return agent.client.workflow.getHandle<typeof codingAgent>(workflowId);
}

const message = { id: "a", parts: [{ type: "text", text: "Go on." }], queuedAt: "2026-11-26T00:00:00.000Z" };

it.each([
  ["a session's empty input", ["{}"]],
  ["no input", []],
  ["the input of a fork", [JSON.stringify({ guidance: [message] })]],
])("under a new id, a copy of %s ends at once, and its result says what to do", async (_what, inputs) => {
  const session = await agent.run(scriptedModel().says("Done."));
  await session.result();
  const id = `copy-${randomUUID()}`;
  const handle = await startLike(id, inputs);
  const closed = await handle.result();
  expect(closed).toMatchObject({ status: "failed", steps: 0 });
  for (const said of ["Nothing was started", id, '{"task": "…"}', "that session's own id", "longhaul say"])
    expect(closed.result).toContain(said);
  expect((await handle.describe()).status.name).toBe("COMPLETED");
  const { events = [] } = await handle.fetchHistory();
  const begun = events?.flatMap(({ activityTaskStartedEventAttributes: task }) => task?.attempt ?? []);
  expect(begun).toEqual([1]);
  const rows = await agent.database.store.db.select({ id: sessions.id }).from(sessions);
  expect(rows.map((row) => row.id)).not.toContain(id);
});

it("under the same id, a copy resumes the session", async () => {
  const session = await agent.run(scriptedModel().says("First.").says("Second."));
  await session.result();
  const handle = await startLike(session.id, ["{}"]);
  expect(await handle.result()).toMatchObject({ status: "completed", result: "Second.", steps: 2 });
  expect(session.model.requests).toHaveLength(2);
});
