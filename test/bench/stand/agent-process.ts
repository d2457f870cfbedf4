/** The agent's worker as it is deployed, in a process of its own, with one more tool and a meter. */
import { NativeConnection, Runtime, DefaultLogger, Worker, type WorkerOptions } from "@temporalio/worker";
import { pino } from "pino";
import type { AgentActivities } from "../../../activities/contract/activities.ts";
import { createSanitizer } from "../../../activities/redaction/sanitizer.ts";
import { createActivities, type AgentDeps } from "../../../activities/index.ts";
import type { Sandbox } from "../../../activities/sandbox/sandbox.ts";
import type { SandboxHost } from "../../../activities/sandbox/sandbox-host.ts";
import { createToolRegistry, toolRegistry } from "../../../activities/tools/index.ts";
import { freePort } from "../../../client/setup/processes.ts";
import { ensureWorkflowBundle } from "../../../worker/bundle.ts";
import { readWorkerConfig } from "../../../worker/config.ts";
import { bindDeps } from "../../../worker/deps.ts";
import { workerOptions } from "../../../worker/worker-options.ts";
import { serve } from "./channel.ts";
import { meterVerbs, timed, countTransactions } from "./meter.ts";
import { probe } from "./probe-tool.ts";

countTransactions();
const metrics = `127.0.0.1:${await freePort()}`;
Runtime.install({
  logger: new DefaultLogger("ERROR"),
  telemetryOptions: { metrics: { prometheus: { bindAddress: metrics } } },
});
const config = readWorkerConfig();
const sanitizer = createSanitizer(config.secrets);
const connection = await NativeConnection.connect({ address: process.env["TEMPORAL_ADDRESS"] ?? "" });
const namespace = "default";
const logger = pino({ level: "error" });
const bound = await bindDeps(config, { connection, namespace, sanitizer, logger, identity: "bench" });

await bound.services.start();

const { sandboxHost: host } = bound.deps;
const isBulk = (id: string) => id.startsWith("bulk-");
let shared: Promise<Sandbox> | undefined;
/** Sessions in bulk share one sandbox: fifty containers would be what is measured. */
const sandboxHost: SandboxHost = {
  ...host,
  open: (spec, signal) =>
    isBulk(spec.sessionId)
      ? (shared ??= host.open({ ...spec, sessionId: "bench-bulk" }))
      : host.open(spec, signal),
  remove: (id) => (isBulk(id) ? Promise.resolve() : host.remove(id)),
  volume: (id) =>
    isBulk(id) ? Promise.resolve(shared?.then(({ identity }) => identity.volume)) : host.volume(id),
};
const { model } = bound.deps;
const deps: AgentDeps = {
  ...bound.deps,
  sandboxHost,
  tools: createToolRegistry([...toolRegistry.values(), probe]),
  model: { ask: (...args) => timed("model", "ask", () => model.ask(...args)) },
};
const activities = Object.fromEntries(
  Object.entries(createActivities(deps)).map(([name, body]) => [
    name,
    (input: never) => timed("activity", name, () => body(input)),
  ]),
) as unknown as AgentActivities;

const bundle = await ensureWorkflowBundle();
const [options] = workerOptions({
  config,
  connection,
  namespace,
  bundle,
  activities,
  announceStop: deps.announcements.announceStop,
});
const worker = await Worker.create(options as WorkerOptions);
const running = worker.run();

/** Heartbeats that were sent to the server, by the SDK's own count. */
async function heartbeats(): Promise<number> {
  const text = await (await fetch(`http://${metrics}/metrics`)).text();
  const counted = text
    .split("\n")
    .filter((line) => /^temporal_request(_total)?\{.*RecordActivityTaskHeartbeat/.test(line));
  return counted.reduce((sum, line) => sum + Number(line.split(" ").at(-1)), 0);
}

const verbs = { ...meterVerbs, heartbeats };
export type AgentVerbs = typeof verbs;

serve(verbs, async () => {
  worker.shutdown();
  await running;
  if (shared !== undefined) await host.remove("bench-bulk");
  await bound.services.stop();
  await connection.close();
});
