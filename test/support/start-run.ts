/** Runs of a session that tests start directly, as a client of Temporal does. */
import type { Client } from "@temporalio/client";
import type Dockerode from "dockerode";
import { removeBox } from "./remove-box.ts";
import type { codingAgent } from "../../workflows/index.ts";
import { WORKFLOW_TYPE } from "../../workflows/messages.ts";
import type { CodingAgentInput } from "../../workflows/run-input.ts";

export const startRun = (
  client: Client,
  workflowId: string,
  taskQueue: string,
  input: CodingAgentInput = {},
) => client.workflow.start<typeof codingAgent>(WORKFLOW_TYPE, { workflowId, taskQueue, args: [input] });

/** Signals a message and starts a run for it where none is open. */
export const startRunFor = (
  client: Client,
  workflowId: string,
  taskQueue: string,
  message: { readonly id: string; readonly text: string },
) =>
  client.workflow.signalWithStart<typeof codingAgent, [object]>(WORKFLOW_TYPE, {
    workflowId,
    taskQueue,
    args: [{}],
    signal: "guidance",
    signalArgs: [message],
  });

/** Ends a session's run, whatever it does, and removes its sandbox. */
export async function endSession(client: Client, docker: Dockerode, id: string): Promise<void> {
  await client.workflow
    .getHandle(id)
    .terminate("It is over.")
    .catch(() => undefined);
  await removeBox(docker, id).catch(() => undefined);
}
