/** A session that keeps no sandbox while a question of an MCP server waits for long. */
import { inputRequired } from "@modelcontextprotocol/server";
import { expect, test } from "vitest";
import { z } from "zod";
import { useAgent } from "../support/agent-harness.ts";
import { checkSession } from "../support/checker/check-session.ts";
import { eventually } from "../support/eventually.ts";
import { mcpAskingProgram } from "../support/mcp-programs.ts";
import { startMcpServer, withServers } from "../support/mcp-server.ts";
import { questionRows, untilWaiting } from "../support/questions.ts";
import { scriptedModel } from "../support/scripted-model.ts";
import { resultTexts } from "../support/stored.ts";
import { touch, isThere } from "../support/in-container.ts";

const agent = useAgent();

const parking = (servers: object) =>
  withServers(servers, { questions: { mode: "ask", parkAfter: 200, maxOpen: 8 } });

const containerOf = (id: string) => agent.docker.getContainer(`longhaul-${id}`);

test("the answer continues the call of a server elsewhere, and the next step has its files", async () => {
  let calls = 0;
  const server = await startMcpServer((made) => {
    made.registerTool("create", { description: "Makes an issue." }, async ({ mcpReq }) => {
      calls += 1;
      const { inputResponses } = mcpReq;
      if (inputResponses !== undefined)
        return {
          content: [
            { type: "text", text: `${JSON.stringify(inputResponses)} ${String(mcpReq.requestState())}` },
          ],
        };
      const requestedSchema = z.object({ project: z.string() });
      return inputRequired({
        inputRequests: { where: inputRequired.elicit({ message: "Which project?", requestedSchema }) },
        requestState: "kept",
      });
    });
  });
  const session = await agent.start(
    scriptedModel()
      .calls("bash", { command: "echo before > file.txt" })
      .calls("github__create", {})
      .calls("bash", { command: "cat file.txt" })
      .says("Done."),
    { config: parking({ github: { url: server.url } }) },
  );
  await session.until("sandbox:parked");
  expect(await isThere(containerOf(session.id))).toBe(false);
  await session.handle.executeUpdate("answerQuestion", { args: [{ question: "s2c0q1", text: "beta" }] });
  expect(await session.result()).toMatchObject({ status: "completed", result: "Done." });
  const [, created, read] = await resultTexts(agent.database.store, session.id);
  expect(created).toBe('{"where":{"action":"accept","content":{"project":"beta"}}} kept');
  expect(read).toContain("before");
  expect(calls).toBe(2);
  expect(await questionRows(agent.database.store, session)).toMatchObject([
    { id: "s2c0q1", kind: "mcp", status: "answered", answer: "beta" },
  ]);
  await checkSession(agent, session);
});

test("the answer continues the call of a program that went with its sandbox", async () => {
  const session = await agent.start(
    scriptedModel().calls("box__ask", {}).calls("bash", { command: "cat calls.log" }).says("Done."),
    { config: parking({ box: mcpAskingProgram }) },
  );
  await untilWaiting(agent.database.store, session);
  await session.until("sandbox:parked");
  expect(await isThere(containerOf(session.id))).toBe(false);
  await session.handle.executeUpdate("answerQuestion", { args: [{ question: "s1c0q1", text: "this" }] });
  // The program holds its result until it finds this.
  await eventually("its new sandbox lets it answer", () =>
    touch(containerOf(session.id), "/tmp/answered").then(
      () => true,
      () => false,
    ),
  );
  expect(await session.result()).toMatchObject({ status: "completed", result: "Done." });
  const [asked, calls] = await resultTexts(agent.database.store, session.id);
  expect(asked).toMatch(/^\[The server box was restarted .* is gone\.\]\nthis kept$/);
  // Once before the question, once with its answer.
  expect(calls).toBe("ask\nask");
  await checkSession(agent, session);
});
