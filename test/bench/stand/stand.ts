/** Everything that is measured, brought up for one run on free ports: services, model, both workers. */
import { randomBytes } from "node:crypto";
import type { Client } from "@temporalio/client";
import type { RunConfig } from "../../../activities/config/agent-config.ts";
import { migrateStore, openStore, type Store } from "../../../activities/store/db.ts";
import { createSession } from "../../../activities/store/sessions.ts";
import { ensurePostgres, ownPostgresUrl } from "../../../client/setup/postgres.ts";
import { readState } from "../../../client/setup/state.ts";
import { ownStand } from "../../support/own-stand.ts";
import { configOf } from "../../support/run-config.ts";
import { startRun } from "../../support/start-run.ts";
import type { AgentVerbs } from "./agent-process.ts";
import { startProcess, type RemoteProcess, type Verbs } from "./channel.ts";
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
  /** Of Postgres, to create databases. */
  readonly superuserUrl: string;
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
export function bringUpStand(say: (line: string) => void): Promise<Stand> {
  return ownStand(["temporal", "docker", "image"], say, async ({ home, services, image, add, connect }) => {
    // "fixed" is durable, unlike the tests': what a commit costs is part of what is measured.
    const databaseUrl = await ensurePostgres({ home, ports: "fixed", say });
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
    const worker = <V extends Verbs>(file: string, queue: string) =>
      startProcess<V>(new URL(file, import.meta.url), { ...environment, LONGHAUL_TASK_QUEUE: queue });
    const [agent, yardstick] = await Promise.all([
      worker<AgentVerbs>("./agent-process.ts", AGENT_QUEUE),
      worker<YardstickVerbs>("./yardstick-process.ts", YARDSTICK_QUEUE),
    ]);
    add(() => Promise.all([agent.end(), yardstick.end()]));
    const client = await connect(services.temporalAddress);
    const inTurn = lanes(LANES);
    return {
      store,
      client,
      model: model.ask,
      agent: agent.ask,
      yardstick: yardstick.ask,
      image,
      temporalPid: readState(home).services.temporal?.pid ?? 0,
      superuserUrl: ownPostgresUrl(home, "superuser") ?? databaseUrl,
      environment,
      say,
      async start(plan, { bulk, queue, config } = {}) {
        const id = `${bulk === true ? "bulk" : "bench"}-${randomBytes(5).toString("hex")}`;
        const settings = runConfig(image);
        const row = { id, task: taskOf(plan), config: config?.(settings) ?? settings };
        await inTurn(() => createSession(store, row));
        return { id, handle: await startRun(client, id, queue ?? AGENT_QUEUE) };
      },
    } satisfies Omit<Stand, "close">;
  });
}

/** Below the stand's own pool: who waits for a connection there gives up after 5 s, which fifty at once on a busy machine did. */
const LANES = 8;

export function runConfig(image: string): RunConfig {
  return configOf({
    sandbox: { image, memory: "512m", network: "none", park: { keep: 0 } },
    limits: { maxSteps: 5_000 },
  });
}
