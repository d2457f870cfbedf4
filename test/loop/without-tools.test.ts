/** A session whose model is used without tools: it answers, and the strict model server sees no tools. */
import { expect, it } from "vitest";
import { startDirectAgent } from "../support/direct-agent.ts";
import { playLoop } from "../support/direct-loop.ts";
import { scriptedModel } from "../support/scripted-model.ts";
import { useDatabase } from "../support/test-database.ts";

const database = useDatabase();

it.each(["responses", "chat"] as const)("completes with the model's text on the %s wire", async (api) => {
  const agent = await startDirectAgent(database, scriptedModel().says("An answer in text."), {
    task: "What is a monad?",
    config: { api, noTools: true },
  });
  const { status } = await playLoop(agent);
  expect(status).toBe("completed");
  expect(agent.model.requests).toHaveLength(1);
  const [request] = agent.model.requests;
  expect(request?.tools).toEqual([]);
  expect(request?.raw).not.toHaveProperty("tools");
  expect(request?.raw).not.toHaveProperty("tool_choice");
  expect(request?.raw).not.toHaveProperty("parallel_tool_calls");
  expect(JSON.stringify(request?.raw)).not.toMatch(/\btools?\b|search_history/);
});
