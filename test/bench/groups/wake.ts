/** A message to a session that has ended: how soon its model is asked, against a plain signal's activity. */
import { randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { WithStartWorkflowOperation } from "@temporalio/client";
import type { codingAgent } from "../../../workflows/index.ts";
import { sendGuidanceUpdate, WORKFLOW_TYPE } from "../../../workflows/messages.ts";
import { now } from "../stand/channel.ts";
import { runAgent } from "../stand/runs.ts";
import { AGENT_QUEUE, YARDSTICK_QUEUE, type Stand } from "../stand/stand.ts";
import { median } from "../stats.ts";
import { type Figure, middleOf, ratioAtMost } from "../table.ts";
import type { Scale } from "./group.ts";

/** Between two messages: the session is idle again by then. */
const PAUSE_MS = 300;

export async function measureWake(stand: Stand, scale: Scale): Promise<Figure[]> {
  const times = scale.repeats * 2;
  const plain = await plainSignals(stand, times);
  const { id } = await runAgent(stand, { steps: 0, calls: 1, tool: "probe" });
  const said: number[] = [];
  for (let time = 1; time <= times; time += 1) {
    await sleep(PAUSE_MS);
    const began = now();
    await say(stand, id, `message ${time}`);
    // The first request was the task's own.
    said.push((await stand.model.nth(id, time + 1)) - began);
    await stand.client.workflow.getHandle(id).result();
  }
  return [
    middleOf("plain signal to its activity", plain),
    middleOf("`say` to an ended session: to its model call", said, {
      ratio: median(said) / median(plain),
      goal: ratioAtMost(1.5),
      note: "starts a run and opens the session and its container again",
    }),
  ];
}

async function plainSignals(stand: Stand, times: number): Promise<number[]> {
  const id = `signals-${randomBytes(5).toString("hex")}`;
  const handle = await stand.client.workflow.start("signalToActivity", {
    workflowId: id,
    taskQueue: YARDSTICK_QUEUE,
    args: [times],
  });
  const sent: number[] = [];
  for (let time = 1; time <= times; time += 1) {
    await sleep(PAUSE_MS);
    sent.push(now());
    await handle.signal("go");
  }
  await handle.result();
  const starts = await stand.yardstick.thinkStarts(id);
  return sent.map((began, index) => (starts[index] ?? Number.NaN) - began);
}

/** As the client does it. */
async function say(stand: Stand, id: string, text: string): Promise<void> {
  await stand.client.workflow.executeUpdateWithStart(sendGuidanceUpdate, {
    args: [{ id: `${id}-${text}`, parts: [{ type: "text", text }] }],
    startWorkflowOperation: new WithStartWorkflowOperation<typeof codingAgent>(WORKFLOW_TYPE, {
      workflowId: id,
      taskQueue: AGENT_QUEUE,
      args: [{}],
      workflowIdConflictPolicy: "USE_EXISTING",
    }),
  });
}
