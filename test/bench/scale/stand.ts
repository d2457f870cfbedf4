/** What hundreds of sessions stand on: Postgres, Temporal with its state in another, Docker, a model, all on this machine. */
import { randomBytes } from "node:crypto";
import { createSession } from "../../../activities/store/sessions.ts";
import { connectDocker } from "../../../activities/sandbox/docker/connect-docker.ts";
import { ownStand } from "../../support/own-stand.ts";
import { type OwnPostgres, startOwnPostgres } from "../../support/own-postgres.ts";
import { type PostgresTemporal, startPostgresTemporal } from "../../support/temporal-server/start.ts";
import { endSession, startRun } from "../../support/start-run.ts";
import { startWorkerProcess, type WorkerProcess } from "../../support/worker-process.ts";
import { type RemoteProcess, startProcess } from "../stand/channel.ts";
import { lanes } from "../stand/lanes.ts";
import { runConfig } from "../stand/stand.ts";
import { INSPECTED } from "./collect-garbage.ts";
import type { PacingModelVerbs } from "./pacing-model-process.ts";

export interface ScaleStand {
  readonly postgres: OwnPostgres;
  readonly temporal: PostgresTemporal;
  readonly model: RemoteProcess<PacingModelVerbs>;
  /** As it is deployed. */
  startWorker(): Promise<WorkerProcess>;
  /** @returns its id */
  startSession(): Promise<string>;
  /** Ends sessions without a word, and removes their sandboxes. */
  endSessions(ids: readonly string[]): Promise<void>;
  close(): Promise<void>;
}

const TASK_QUEUE = "bench-scale";
/** More than any level's sessions on one worker: none should wait for another's stream. */
const ACTIVITY_SLOTS = 1_000;
/** Of starts and ends: containers come and go no faster, and the pool of connections is small. */
const AT_ONCE = 8;

/** @throws ServiceMissing */
export function bringUpScale(
  say: (line: string) => void,
  { isSoak }: { readonly isSoak: boolean },
): Promise<ScaleStand> {
  return ownStand(["docker", "image"], say, async ({ image, add, connect }) => {
    // Durable: what a commit costs is part of what is measured.
    const settings = ["max_connections=200", "fsync=on", "full_page_writes=on"];
    const postgres = await startOwnPostgres({ settings });
    add(() => postgres.close());
    const temporal = await startPostgresTemporal({ durable: true, say });
    add(() => temporal.close());
    const model = await startProcess<PacingModelVerbs>(new URL("./pacing-model-process.ts", import.meta.url));
    add(() => model.end());
    const client = await connect(temporal.address);
    const docker = connectDocker();
    const inTurn = lanes(AT_ONCE);
    const environment = {
      DATABASE_URL: postgres.url,
      TEMPORAL_ADDRESS: temporal.address,
      OPENAI_API_KEY: "sk-bench-0123456789abcdef",
      OPENAI_BASE_URL: await model.ask.url(),
      SANDBOX_IMAGE: image,
      LONGHAUL_TASK_QUEUE: TASK_QUEUE,
      LONGHAUL_ACTIVITY_SLOTS: String(ACTIVITY_SLOTS),
      LONGHAUL_LOG_LEVEL: "warn",
      LONGHAUL_SHUTDOWN_GRACE_MS: "500",
      ...(isSoak ? INSPECTED : {}),
    };
    const workers = new Set<WorkerProcess>();
    const sessions = new Set<string>();
    const endSessions = async (ids: readonly string[]) => {
      await Promise.all(ids.map((id) => inTurn(() => endSession(client, docker, id))));
      for (const id of ids) sessions.delete(id);
    };
    // Where a level is broken off.
    add(
      () => endSessions([...sessions]),
      () => Promise.all([...workers].filter(({ alive }) => alive).map((worker) => worker.kill())),
    );
    return {
      postgres,
      temporal,
      model,
      async startWorker() {
        const worker = await startWorkerProcess(environment);
        workers.add(worker);
        return worker;
      },
      startSession: () =>
        inTurn(async () => {
          const id = `scale-${randomBytes(5).toString("hex")}`;
          sessions.add(id);
          await createSession(postgres.store, { id, task: "Go on.", config: runConfig(image) });
          await startRun(client, id, TASK_QUEUE);
          return id;
        }),
      endSessions,
    };
  });
}
