/** A session whose workers are processes that a test starts and kills; the model, the rows and the sandbox outlive them. */
import { randomBytes } from "node:crypto";
import { Connection, type WorkflowHandle } from "@temporalio/client";
import Dockerode from "dockerode";
import { inject, onTestFinished, type TestContext } from "vitest";
import { connectDocker } from "../../activities/sandbox/docker/connect-docker.ts";
import { removeBox } from "./remove-box.ts";
import { createSession } from "../../activities/store/sessions.ts";
import type { StoredPack } from "../../activities/store/workspace-pack.ts";
import { parseCodecKeys } from "../../temporal/codec.ts";
import { temporalClient } from "../../temporal/temporal-client.ts";
import type { codingAgent } from "../../workflows/index.ts";
import { WORKFLOW_TYPE } from "../../workflows/messages.ts";
import { runConfig } from "./agent-harness.ts";
import { CANARY } from "./canary.ts";
import type { SessionServices } from "./checker/collect.ts";
import { changedConfig, type ConfigChange } from "./run-config.ts";
import { startScriptedModel, type ModelScript, type ScriptedModelServer } from "./scripted-model.ts";
import { sessionEvents, type SessionEvents } from "./session-events.ts";
import type { Store } from "../../activities/store/db.ts";
import { startWorkerProcess, type WorkerProcess, type WorkerProcessOptions } from "./worker-process.ts";
import { readStarter, workflowOptions } from "../../client/sessions/start-session.ts";

export interface KillableSession extends SessionEvents {
  readonly id: string;
  readonly model: ScriptedModelServer;
  readonly handle: WorkflowHandle<typeof codingAgent>;
  readonly sandbox: Dockerode.Container;
  /** For `checkSession`. */
  readonly services: SessionServices;
  /** @param environment of this worker alone, in addition to the others' */
  startWorker(
    environment?: Readonly<Record<string, string>>,
    files?: WorkerProcessOptions,
  ): Promise<WorkerProcess>;
  close(): Promise<void>;
}

export interface KillableOptions {
  /** host:port of the test's own Temporal. */
  readonly temporalAddress?: string;
  /** DOCKER_HOST of the test's own engine. */
  readonly dockerHost?: string;
  readonly config?: ConfigChange;
  readonly task?: string;
  /** Files that the session begins with. */
  readonly workspace?: StoredPack;
  /** Another session, to share its queue, workers and model. */
  readonly beside?: KillableSession;
  /** The test that closes the session; default: the current one, which a concurrent test does not know. */
  readonly context?: Pick<TestContext, "onTestFinished">;
  /** Of the workers, in addition to what they need. */
  readonly environment?: Readonly<Record<string, string>>;
}

/** Starts a session on its own task queue, which has no worker yet. It is closed with its test. */
export async function startKillableSession(
  database: { readonly url: string; readonly store: Store },
  script: ModelScript,
  options: KillableOptions = {},
): Promise<KillableSession> {
  const id = `test-${randomBytes(5).toString("hex")}`;
  const address = options.temporalAddress ?? inject("temporalAddress");
  const { beside } = options;
  const [model, connection] = await Promise.all([
    beside?.model ?? startScriptedModel(script, { apiKey: CANARY }),
    Connection.connect({ address }),
  ]);
  const keys = parseCodecKeys(options.environment?.["LONGHAUL_CODEC_KEYS"]);
  const client = temporalClient({ connection, namespace: "default" }, keys);
  const docker =
    options.dockerHost === undefined
      ? connectDocker()
      : new Dockerode({ socketPath: options.dockerHost.replace("unix://", "") });
  const workers: WorkerProcess[] = [];
  const config = changedConfig(runConfig(), options.config);
  const task = options.task ?? "Do what is asked.";
  const { workspace } = options;
  await createSession(database.store, {
    id,
    task,
    config,
    workspace,
  });
  const handle = await client.workflow.start<typeof codingAgent>(WORKFLOW_TYPE, {
    ...workflowOptions(await readStarter({ store: database.store, taskQueue: beside?.id ?? id }), id, {
      task,
      config,
    }),
    args: [{}],
  });
  let closing: Promise<void> | undefined;
  const session: KillableSession = {
    ...sessionEvents(database.store, id),
    id,
    model,
    handle,
    sandbox: docker.getContainer(`longhaul-${id}`),
    services: { database, client, docker },
    async startWorker(changes = {}, files = {}) {
      const settings = {
        DATABASE_URL: database.url,
        DATABASE_CONNECTIONS: "5",
        TEMPORAL_ADDRESS: address,
        OPENAI_BASE_URL: model.baseUrl,
        OPENAI_API_KEY: CANARY,
        SANDBOX_IMAGE: inject("sandboxImage"),
        LONGHAUL_TASK_QUEUE: id,
        LONGHAUL_SHUTDOWN_GRACE_MS: "1000",
        LONGHAUL_LOG_LEVEL: "warn",
        ...(options.dockerHost === undefined ? {} : { DOCKER_HOST: options.dockerHost }),
        ...options.environment,
        ...changes,
      };
      const worker = await startWorkerProcess(settings, files);
      workers.push(worker);
      return worker;
    },
    close: () => (closing ??= end()),
  };
  const end = async (): Promise<void> => {
    await handle.terminate("the test is over").catch(() => undefined);
    await Promise.all(workers.map((worker) => worker.kill()));
    await removeBox(docker, id);
    await Promise.all([connection.close(), ...(beside ? [] : [model.close()])]);
  };
  (options.context?.onTestFinished ?? onTestFinished)(() => session.close());
  return session;
}

/** A session with two workers. Closed with the test. */
export async function startWithTwo(
  database: { readonly url: string; readonly store: Store },
  script: ModelScript,
  environment: Readonly<Record<string, string>> = {},
) {
  const session = await startKillableSession(database, script, { environment });
  const workers = await Promise.all([session.startWorker(), session.startWorker()]);
  return { session, workers };
}
