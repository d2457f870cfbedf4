/** A batch whose worker is killed: no item runs twice, and never more at once than allowed. */
import { randomBytes } from "node:crypto";
import { expect, inject, it, onTestFinished } from "vitest";
import { Client, Connection } from "@temporalio/client";
import { batchWorkflowId } from "../../activities/contract/batch.ts";
import { listItems } from "../../activities/store/batches.ts";
import { parseBatch } from "../../client/batch/parse-batch.ts";
import { startBatch } from "../../client/batch/start-batch.ts";
import { dataConverter } from "../../worker/connect/data-converter.ts";
import { runConfig } from "../support/agent-harness.ts";
import { CANARY } from "../support/canary.ts";
import { obey } from "../support/commands/obedient-model.ts";
import { mostAtOnce } from "../support/delegating.ts";
import { eventually } from "../support/eventually.ts";
import { startScriptedModel } from "../support/scripted-model.ts";
import { callRows } from "../support/stored.ts";
import { useDatabase } from "../support/test-database.ts";
import { startWorkerProcess } from "../support/worker-process.ts";

const database = useDatabase();

it("is processed over a kill -9 of its worker, two at once, with the model calls of an undisturbed run [B1]", async () => {
  const { db } = database.store;
  const name = `b${randomBytes(4).toString("hex")}`;
  const model = await startScriptedModel(obey, { apiKey: CANARY });
  const address = inject("temporalAddress");
  const connection = await Connection.connect({ address });
  const client = new Client({ connection, dataConverter });
  const startWorker = () =>
    startWorkerProcess({
      DATABASE_URL: database.url,
      TEMPORAL_ADDRESS: address,
      OPENAI_BASE_URL: model.baseUrl,
      OPENAI_API_KEY: CANARY,
      LONGHAUL_TASK_QUEUE: name,
      LONGHAUL_SHUTDOWN_GRACE_MS: "1000",
      LONGHAUL_LOG_LEVEL: "warn",
    });
  const workers = [await startWorker()];
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
  const tasks = Array.from({ length: 6 }, (_, place) =>
    JSON.stringify({ id: `i${place}`, task: `run: sleep ${place < 2 ? 8 : 0}\nsay: Done ${place}.` }),
  );
  const { items } = parseBatch(tasks.join("\n"));
  const start = { id: undefined, config: runConfig(), attachments: [], folder: undefined };
  const order = {
    name,
    items: items.map((item) => ({ ...item, start: { ...start, task: item.task } })),
    concurrency: 2,
    stopAfter: undefined,
    maxCostUsd: undefined,
  };
  expect(await startBatch(services, order)).toEqual({ attached: false, begun: 6, completed: 0 });
  expect(await startBatch(services, order)).toMatchObject({ attached: true });
  // Each of the first two is in its command, which continues without the worker.
  const isAtCommand = async (item: number) =>
    (await callRows(database.store, `${name}-i${item}`, "running")).length > 0;
  await eventually("two commands run", async () => (await isAtCommand(0)) && (await isAtCommand(1)), 120_000);
  await workers[0]?.kill();
  workers.push(await startWorker());
  const handle = client.workflow.getHandle(batchWorkflowId(name));
  expect(await handle.result()).toMatchObject({ status: "completed", total: 6, completed: 6, failed: 0 });
  expect(await mostAtOnce(handle)).toBe(2);
  expect(model.requests).toHaveLength(12);
  const rows = await listItems(db, name);
  expect(rows.map(({ itemId, status, attempt }) => `${itemId} ${status} ${attempt}`)).toEqual(
    items.map(({ id }) => `${id} completed 1`),
  );

  expect(await startBatch(services, order)).toEqual({ attached: false, begun: 0, completed: 6 });
  expect(await listItems(db, name)).toEqual(rows);
}, 240_000);
