/** The soak's own services: a Postgres and a Temporal that may be stopped, a model, two workers. Docker is the machine's. */
import type { Client } from "@temporalio/client";
import type Dockerode from "dockerode";
import { connectDocker } from "../../activities/sandbox/docker/connect-docker.ts";
import type { Services } from "../../client/connect/connection.ts";
import { CANARY } from "../support/canary.ts";
import { clientServices } from "../support/client-services.ts";
import type { SessionServices } from "../support/checker/collect.ts";
import { ownStand } from "../support/own-stand.ts";
import { startOwnPostgres, type OwnPostgres } from "../support/own-postgres.ts";
import { startOwnTemporal, type OwnTemporal } from "../support/own-temporal.ts";
import { startPostgresTemporal } from "../support/temporal-server/start.ts";
import { ServiceMissing } from "../../temporal/service-missing.ts";
import { startSharedModel, type SharedModel } from "../support/shared-model.ts";
import { createWorkers, type Workers } from "./workers.ts";

export interface ChaosStand {
  readonly postgres: OwnPostgres;
  readonly temporal: OwnTemporal;
  readonly model: SharedModel;
  readonly workers: Workers;
  readonly client: Client;
  readonly docker: Dockerode;
  readonly image: string;
  /** For the checker. */
  readonly place: SessionServices;
  readonly taskQueue: string;
  /** As the command line reaches them. */
  readonly services: Services;
  close(): Promise<void>;
}

/** Its server as a company runs it, if it can be had. */
async function startTemporal(say: (line: string) => void): Promise<OwnTemporal> {
  try {
    return await startPostgresTemporal({ durable: false, say });
  } catch (error) {
    if (!(error instanceof ServiceMissing)) throw error;
    say(`${error.message.split("\n")[0]} The development server is used.`);
    return startOwnTemporal();
  }
}

/** @throws ServiceMissing */
export function bringUpChaos(say: (line: string) => void): Promise<ChaosStand> {
  return ownStand(["docker", "image"], say, async ({ image, add, connect }) => {
    say("starting a Postgres and a Temporal of its own");
    const [postgres, temporal, model] = await Promise.all([
      startOwnPostgres({ settings: ["max_connections=200"] }),
      startTemporal(say),
      // The window is what the sessions are configured for at most; smaller ones are theirs to keep.
      startSharedModel(),
    ]);
    add(
      () => postgres.close(),
      () => temporal.close(),
      () => model.close(),
    );
    const client = await connect(temporal.address);
    const docker = connectDocker();
    const taskQueue = "chaos";
    const workers = createWorkers({
      DATABASE_URL: postgres.url,
      DATABASE_CONNECTIONS: "20",
      TEMPORAL_ADDRESS: temporal.address,
      OPENAI_BASE_URL: model.baseUrl,
      OPENAI_API_KEY: CANARY,
      SANDBOX_IMAGE: image,
      LONGHAUL_TASK_QUEUE: taskQueue,
      LONGHAUL_REAP_MINUTES: "1",
      LONGHAUL_SHUTDOWN_GRACE_MS: "3000",
      LONGHAUL_LOG_LEVEL: "warn",
    });
    add(() => workers.close());
    const place: SessionServices = { database: postgres, client, docker };
    const services = clientServices({ database: postgres, client, taskQueue });
    return { postgres, temporal, model, workers, client, docker, image, place, taskQueue, services };
  });
}
