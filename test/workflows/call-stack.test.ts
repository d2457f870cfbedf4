/** What the Web UI shows under "Call Stack". */
import { Context } from "@temporalio/activity";
import { expect, it } from "vitest";
import { answered } from "../support/fake-activities.ts";
import { play } from "../support/play-loop.ts";

it("names what the run waits for, in few lines a promise", async () => {
  let stack = "";
  await play({
    steps: [
      async () => {
        const { client, info } = Context.current();
        const { workflowId = "", runId } = info.workflowExecution ?? {};
        stack = await client.workflow.getHandle(workflowId, runId).query<string>("__stack_trace");
        return answered();
      },
    ],
  });
  expect(stack).toMatch(/at askModel \(.*workflows\/model-step\.ts:\d+:\d+\)/);
  expect(stack).toMatch(/at \w+ \(.*workflows\/run\.ts:\d+:\d+\)/);
  const lines = stack.split("\n\n").map((block) => block.split("\n").length);
  expect(Math.max(...lines)).toBeLessThanOrEqual(4);
});
