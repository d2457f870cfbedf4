/** The yardstick's worker: its own process, the agent's settings. */
import { fileURLToPath } from "node:url";
import {
  bundleWorkflowCode,
  DefaultLogger,
  NativeConnection,
  Runtime,
  Worker,
  type WorkerOptions,
} from "@temporalio/worker";
import type { AgentActivities } from "../../../activities/contract/activities.ts";
import { readWorkerConfig } from "../../../worker/config.ts";
import { payloadConverterPath } from "../../../temporal/codec.ts";
import { workerOptions } from "../../../worker/worker-options.ts";
import { thinkStarts, yardstickActivities } from "../yardstick/activities.ts";
import { serve } from "./channel.ts";
import { meterVerbs } from "./meter.ts";

const logger = new DefaultLogger("ERROR");
Runtime.install({ logger });
const config = readWorkerConfig();
const connection = await NativeConnection.connect({ address: process.env["TEMPORAL_ADDRESS"] ?? "" });
const workflowsPath = fileURLToPath(new URL("../yardstick/workflows.ts", import.meta.url));
const { code } = await bundleWorkflowCode({ workflowsPath, payloadConverterPath, logger });
const [options] = workerOptions({
  config,
  connection,
  namespace: "default",
  bundle: { codePath: "" },
  activities: {} as AgentActivities,
});
const worker = await Worker.create({
  ...(options as WorkerOptions),
  workflowBundle: { code },
  activities: yardstickActivities,
});
const running = worker.run();

const verbs = { ...meterVerbs, thinkStarts: (id: string) => [...thinkStarts(id)] };
export type YardstickVerbs = typeof verbs;

serve(verbs, async () => {
  worker.shutdown();
  await running;
  await connection.close();
});
