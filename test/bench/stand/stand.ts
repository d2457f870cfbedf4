/** Everything that is measured, brought up for one run on free ports: services, model, both workers. */
import { randomBytes } from "node:crypto";
import { Client, Connection } from "@temporalio/client";
import { agentConfigSchema, type RunConfig } from "../../../activities/config/agent-config.ts";
import { migrateStore, openStore, type Store } from "../../../activities/store/db.ts";
import { createSession } from "../../../activities/store/sessions.ts";
import { dataConverter } from "../../../worker/connect/data-converter.ts";
import { ensurePostgres } from "../../../client/setup/postgres.ts";
import { readState } from "../../../client/setup/state.ts";
import { bringUp } from "../../../client/setup/services.ts";
import { closable } from "../../support/closers.ts";
import { configOf } from "../../support/run-config.ts";
import { startRun } from "../../support/start-run.ts";
import { endServices, newTestHome, sweepOldRuns } from "../../support/services.ts";
import type { AgentVerbs } from "./agent-process.ts";
import { startProcess, type RemoteProcess } from "./channel.ts";
import { lanes } from "./lanes.ts";
import type { ModelVerbs } from "./model-process.ts";
import { taskOf, type Plan } from "./plan.ts";
import type { YardstickVerbs } from "./yardstick-process.ts";

export interface Stand {
  readonly store: Store;
  readonly client: Client;
  readonly model: RemoteProcess<ModelVerbs>["ask"];
  readonly agent: RemoteProcess<AgentVerbs>["ask"];
  readonly yardstick: RemoteProcess<YardstickVerbs>["ask"];
  readonly image: string;
  /** Of Temporal's server. */
  readonly temporalPid: number;
  /** The environment of a separate worker, without its queue. */
  readonly environment: Readonly<Record<string, string>>;
  readonly say: (line: string) => void;
  /** Starts a session. In bulk: without a container of its own. */
  start(plan: Plan, options?: StartOptions): Promise<BenchSession>;
  close(): Promise<void>;
}

export interface StartOptions {
  readonly bulk?: boolean;
  readonly queue?: string;
  readonly config?: (config: RunConfig) => RunConfig;
}

export interface BenchSession {
  readonly id: string;
  readonly handle: Awaited<ReturnType<typeof startRun>>;
}

export const AGENT_QUEUE = "bench-agent";
export const YARDSTICK_QUEUE = "bench-yardstick";
const KEY = "sk-bench-0123456789abcdef";

/** @throws ServiceMissing */
export async function bringUpStand(say: (line: string) => void): Promise<Stand> {
  await sweepOldRuns();
  const home = newTestHome();
  return closable(
    () => endServices(home),
    async (add) => {
      // "fixed" is durable, unlike the tests': what a commit costs is part of what is measured.
      const databaseUrl = await ensurePostgres({ home, ports: "fixed", say });
      const services = await bringUp({ home, ports: "free", say, need: ["temporal", "docker", "image"] });
      const image = services.sandboxImage ?? agentConfigSchema.parse({}).sandbox.image;
      const store = openStore({ url: databaseUrl, maxConnections: 10 });
      add(() => store.close());
      await migrateStore(store);
      const model = await startProcess<ModelVerbs>(new URL("./model-process.ts", import.meta.url));
      add(() => model.end());
      const environment = {
        DATABASE_URL: databaseUrl,
        TEMPORAL_ADDRESS: services.temporalAddress,
        TEMPORAL_NAMESPACE: "default",
        OPENAI_API_KEY: KEY,
        OPENAI_BASE_URL: await model.ask.url(),
        LONGHAUL_LOG_LEVEL: "error",
        LONGHAUL_SHUTDOWN_GRACE_MS: "500",
        SANDBOX_IMAGE: image,
      };
      const worker = { ...environment, LONGHAUL_TASK_QUEUE: AGENT_QUEUE };
      const [agent, yardstick] = await Promise.all([
        startProcess<AgentVerbs>(new URL("./agent-process.ts", import.meta.url), worker),
        startProcess<YardstickVerbs>(new URL("./yardstick-process.ts", import.meta.url), {
          ...worker,
          LONGHAUL_TASK_QUEUE: YARDSTICK_QUEUE,
        }),
      ]);
      add(() => Promise.all([agent.end(), yardstick.end()]));
      const connection = await Connection.connect({ address: services.temporalAddress });
      add(() => connection.close());
      const client = new Client({ connection, dataConverter });
      const inTurn = lanes(LANES);
      return {
        store,
        client,
        model: model.ask,
        agent: agent.ask,
        yardstick: yardstick.ask,
        image,
        temporalPid: readState(home).services.temporal?.pid ?? 0,
        environment,
        say,
        start: (plan, options) => startSession({ store, client, image, inTurn }, plan, options ?? {}),
      };
    },
  );
}

async function startSession(
  {
    store,
    client,
    image,
    inTurn,
  }: Pick<Stand, "store" | "client" | "image"> & { inTurn: ReturnType<typeof lanes> },
  plan: Plan,
  { bulk, queue, config }: StartOptions,
): Promise<BenchSession> {
  const id = `${bulk === true ? "bulk" : "bench"}-${randomBytes(5).toString("hex")}`;
  const settings = runConfig(image);
  const row = { id, task: taskOf(plan), config: config?.(settings) ?? settings };
  await inTurn(() => createSession(store, row));
  return { id, handle: await startRun(client, id, queue ?? AGENT_QUEUE) };
}

/** Below the stand's own pool: who waits for a connection there gives up after 5 s, which fifty at once on a busy machine did. */
const LANES = 8;

export function runConfig(image: string): RunConfig {
  return configOf({ sandbox: { image, memory: "512m", network: "none" }, limits: { maxSteps: 5_000 } });
}
