/** Batches whose workers are killed or replaced: no item runs twice, and never more at once than allowed. */
import { randomBytes } from "node:crypto";
import { expect, inject, it, onTestFinished } from "vitest";
import { Client, Connection } from "@temporalio/client";
import { batchWorkflowId } from "../../activities/contract/batch.ts";
import { listItems } from "../../activities/store/batches.ts";
import { parseBatch } from "../../client/batch/batch-file.ts";
import { startBatch } from "../../client/batch/start-batch.ts";
import { dataConverter } from "../../temporal/codec.ts";
import { runConfig } from "../support/agent-harness.ts";
import { CANARY } from "../support/canary.ts";
import { obey } from "../support/commands/obedient-model.ts";
import { mostAtOnce } from "../support/delegating.ts";
import { eventually } from "../support/eventually.ts";
import { startScriptedModel } from "../support/scripted-model.ts";
import { callRows } from "../support/stored.ts";
import { newerTemporal, startOwnTemporal } from "../support/own-temporal.ts";
import { useDatabase } from "../support/test-database.ts";
import { makeCurrent } from "../support/versions.ts";
import { startWorkerProcess, type WorkerProcess } from "../support/worker-process.ts";

const database = useDatabase();

/** Where a batch of these tasks runs, with workers of its own. */
async function batchOf(tasks: readonly string[], concurrency: number, address = inject("temporalAddress")) {
  const name = `b${randomBytes(4).toString("hex")}`;
  const model = await startScriptedModel(obey, { apiKey: CANARY });
  const connection = await Connection.connect({ address });
  const client = new Client({ connection, dataConverter });
  const workers: WorkerProcess[] = [];
  onTestFinished(async () => {
    await Promise.all(workers.map((worker) => worker.kill()));
    await Promise.all([connection.close(), model.close()]);
  });
  const services = {
    store: database.store,
    temporal: { client: () => Promise.resolve(client), address, namespace: client.options.namespace },
    taskQueue: name,
    uiUrl: () => undefined,
    close: () => Promise.resolve(),
  };
  const { items } = parseBatch(
    tasks.map((task, place) => JSON.stringify({ id: `i${place}`, task })).join("\n"),
  );
  const start = { id: undefined, config: runConfig(), attachments: [], folder: undefined };
  const order = {
    name,
    items: items.map((item) => ({ ...item, start: { ...start, task: item.task } })),
    concurrency,
    stopAfter: undefined,
    maxCostUsd: undefined,
  };
  return {
    name,
    items,
    model,
    client,
    handle: client.workflow.getHandle(batchWorkflowId(name)),
    start: () => startBatch(services, order),
    async startWorker(environment: Readonly<Record<string, string>> = {}) {
      const worker = await startWorkerProcess({
        DATABASE_URL: database.url,
        TEMPORAL_ADDRESS: address,
        OPENAI_BASE_URL: model.baseUrl,
        OPENAI_API_KEY: CANARY,
        LONGHAUL_TASK_QUEUE: name,
        LONGHAUL_SHUTDOWN_GRACE_MS: "1000",
        LONGHAUL_LOG_LEVEL: "warn",
        ...environment,
      });
      workers.push(worker);
      return worker;
    },
    async untilAtCommand(...places: readonly number[]) {
      const isAtCommand = async (item: number) =>
        (await callRows(database.store, `${name}-i${item}`, "running")).length > 0;
      await eventually(
        "their commands run",
        async () => (await Promise.all(places.map(isAtCommand))).every(Boolean),
        120_000,
      );
    },
    rows: () => listItems(database.store.db, name),
  };
}

const asText = ({ itemId, status, attempt }: Awaited<ReturnType<typeof listItems>>[number]) =>
  `${itemId} ${status} ${attempt}`;

it(
  "is done over a kill -9 of its worker, two at once, with an undisturbed run's model calls",
  { tags: ["B1"], timeout: 240_000 },
  async () => {
    const tasks = [8, 8, 0, 0, 0, 0].map((seconds, place) => `run: sleep ${seconds}\nsay: Done ${place}.`);
    const batch = await batchOf(tasks, 2);
    const first = await batch.startWorker();
    expect(await batch.start()).toEqual({ attached: false, begun: 6, completed: 0 });
    expect(await batch.start()).toMatchObject({ attached: true });
    // Each of the first two is in its command, which continues without the worker.
    await batch.untilAtCommand(0, 1);
    await first.kill();
    await batch.startWorker();
    expect(await batch.handle.result()).toMatchObject({
      status: "completed",
      total: 6,
      completed: 6,
      failed: 0,
    });
    expect(await mostAtOnce(batch.handle)).toBe(2);
    expect(batch.model.requests).toHaveLength(12);
    const rows = await batch.rows();
    expect(rows.map(asText)).toEqual(batch.items.map(({ id }) => `${id} completed 1`));

    expect(await batch.start()).toEqual({ attached: false, begun: 0, completed: 6 });
    expect(await batch.rows()).toEqual(rows);
  },
);

const newer = await newerTemporal();

it.skipIf(newer === undefined)(
  "moves to a new version of its workers between two items (with Temporal's server 1.32)",
  async () => {
    const temporal = await startOwnTemporal([], newer);
    onTestFinished(() => temporal.close());
    const tasks = [5, 0, 0].map((seconds, place) => `run: sleep ${seconds}\nsay: Done ${place}.`);
    const batch = await batchOf(tasks, 1, temporal.address);
    const pinned = (build: string) => ({
      LONGHAUL_DEPLOYMENT: batch.name,
      LONGHAUL_BUILD_ID: build,
      LONGHAUL_VERSIONING: "pinned",
    });
    await batch.startWorker(pinned("v1"));
    await makeCurrent(batch.client, batch.name, "v1");
    await batch.start();
    await batch.untilAtCommand(0);
    await batch.startWorker(pinned("v2"));
    await makeCurrent(batch.client, batch.name, "v2");
    expect(await batch.handle.result()).toMatchObject({ status: "completed", completed: 3, failed: 0 });
    expect((await batch.rows()).map(asText)).toEqual(batch.items.map(({ id }) => `${id} completed 1`));
    expect(batch.model.requests).toHaveLength(6);
    const { raw } = await batch.client.workflow.getHandle(batchWorkflowId(batch.name)).describe();
    expect(raw.workflowExecutionInfo?.versioningInfo?.deploymentVersion?.buildId).toBe("v2");
  },
  240_000,
);
