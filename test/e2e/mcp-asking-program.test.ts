/** A server in the sandbox that asks people and runs tasks, while workers die. */
import type Dockerode from "dockerode";
import { expect, test } from "vitest";
import { useAgent } from "../support/agent-harness.ts";
import { checkSession } from "../support/checker/check-session.ts";
import { eventually } from "../support/eventually.ts";
import { startKillableSession } from "../support/killable-session.ts";
import { mcpAskingProgram } from "../support/mcp-asking-program.ts";
import { untilWaiting } from "../support/questions.ts";
import { scriptedModel } from "../support/scripted-model.ts";
import { callRows, resultTexts } from "../support/stored.ts";
import { inContainer } from "../support/in-container.ts";
import { withServers } from "../support/mcp-server.ts";

const agent = useAgent();

test("an answer that was sent, and a task, are found by the next worker: nothing runs twice", async () => {
  const session = await startKillableSession(
    agent.database,
    scriptedModel()
      .calls("box__ask", {})
      .calls("box__work", {})
      .calls("bash", { command: "cat calls.log" })
      .says("Done."),
    { config: withServers({ box: mcpAskingProgram }) },
  );
  const first = await session.startWorker();
  await untilWaiting(agent.database.store, session, 120_000);
  await session.handle.signal("answer", { question: "s1c0q1", text: "this" });
  await eventually("the answer is sent", async () => (await marks(session.sandbox)) === 2, 60_000);
  await first.kill();
  await inContainer(session.sandbox, "touch /tmp/answered");
  const second = await session.startWorker();
  await eventually(
    "the task is followed",
    async () => (await callRows(agent.database.store, session.id))[1]?.mcpTask === "t1",
    120_000,
  );
  await second.kill();
  await inContainer(session.sandbox, "touch /tmp/go");
  await session.startWorker();
  expect(await session.handle.result()).toMatchObject({ status: "completed", steps: 4 });
  const [asked, worked, calls] = await resultTexts(agent.database.store, session.id);
  expect(asked).toBe("this kept");
  expect(worked).toMatch(/^worked in \d+$/);
  expect(calls).toBe("ask\nask\nwork");
  await checkSession(session.place, session, { kills: 2 });
});

const marks = async (sandbox: Dockerode.Container) =>
  (await inContainer(sandbox, "cat /workspace/calls.log")).trim().split("\n").length;
