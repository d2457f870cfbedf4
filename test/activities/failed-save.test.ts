/** A save in parallel with the next step that fails: nothing fails with it, and the log says so. */
import { MockActivityEnvironment } from "@temporalio/testing";
import { DefaultLogger, type LogEntry } from "@temporalio/worker";
import { expect, it } from "vitest";
import { startDirectAgent } from "../support/direct-agent.ts";
import { eventually } from "../support/eventually.ts";
import { scriptedModel } from "../support/scripted-model.ts";
import { useDatabase } from "../support/test-database.ts";

const database = useDatabase(5);

it("a call whose files could not be saved has its result, and the log names the step and the reason [invariant 14]", async () => {
  const script = scriptedModel().calls("bash", { command: "echo 1 > a.txt" }).says("Done.");
  const agent = await startDirectAgent(database, script);
  await agent.perform("modelStep", { step: 1, guidance: [] });
  const sandbox = { ...agent.sandbox };
  Object.assign(agent.sandbox, {
    run: (...given: Parameters<typeof sandbox.run>) =>
      given[0].id.startsWith("ws-") ? Promise.reject(new Error("The disk is gone.")) : sandbox.run(...given),
  });
  const said: LogEntry[] = [];
  const environment = new MockActivityEnvironment(
    { attempt: 1, workflowExecution: { workflowId: agent.id, runId: agent.runId } },
    { logger: new DefaultLogger("WARN", (entry) => said.push(entry)) },
  );
  expect(await agent.perform("runTool", { step: 1, index: 0 }, { environment })).toMatchObject({
    outcome: "completed",
  });
  const line = await eventually("the log says so", () =>
    said.find(({ message }) => message.includes("not saved")),
  );
  expect(line.meta).toMatchObject({ step: 1, reason: "The disk is gone." });
});
