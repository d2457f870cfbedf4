/** Attempts at one task: the best is chosen by what commands say, and delivered by the batch itself. */
import { randomBytes } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, inject, it, onTestFinished } from "vitest";
import { Client, Connection } from "@temporalio/client";
import type { AttemptsOrder } from "../../activities/contract/attempts.ts";
import { batchWorkflowId } from "../../activities/contract/batch.ts";
import { verifySchema } from "../../activities/config/verify-settings.ts";
import { findSessionRow } from "../../activities/store/reading.ts";
import { parseBatch } from "../../client/batch/batch-file.ts";
import { readBatch } from "../../client/batch/batch-document.ts";
import { startBatch } from "../../client/batch/start-batch.ts";
import { dataConverter } from "../../temporal/codec.ts";
import { runConfig } from "../support/agent-harness.ts";
import { CANARY } from "../support/canary.ts";
import { obey } from "../support/commands/obedient-model.ts";
import { eventually } from "../support/eventually.ts";
import { gitIn, makeRemote, onRepository, type Remote } from "../support/remotes.ts";
import { startScriptedModel } from "../support/scripted-model.ts";
import { callRows } from "../support/stored.ts";
import { useDatabase } from "../support/test-database.ts";
import { startWorkerProcess } from "../support/worker-process.ts";

const database = useDatabase();

interface Options {
  readonly place: Remote;
  readonly verify?: object;
  readonly attempts?: Partial<AttemptsOrder>;
  readonly concurrency?: number;
}

/** What differs between the attempts stands in for what models would do. */
async function attemptsAt(
  tasks: readonly string[],
  { place, verify = {}, attempts = {}, concurrency = 2 }: Options,
) {
  const name = `a${randomBytes(4).toString("hex")}`;
  const model = await startScriptedModel(obey, { apiKey: CANARY });
  const address = inject("temporalAddress");
  const connection = await Connection.connect({ address });
  const client = new Client({ connection, dataConverter });
  const worker = await startWorkerProcess({
    DATABASE_URL: database.url,
    TEMPORAL_ADDRESS: address,
    OPENAI_BASE_URL: model.baseUrl,
    OPENAI_API_KEY: CANARY,
    LONGHAUL_TASK_QUEUE: name,
    LONGHAUL_SHUTDOWN_GRACE_MS: "1000",
    LONGHAUL_LOG_LEVEL: "warn",
  });
  onTestFinished(async () => {
    await worker.kill();
    await Promise.all([connection.close(), model.close()]);
  });
  const services = {
    store: database.store,
    temporal: { client: () => Promise.resolve(client), address, namespace: client.options.namespace },
    taskQueue: name,
    uiUrl: () => undefined,
    close: () => Promise.resolve(),
  };
  const settings = { commands: ["test -f good"], rounds: 0, countLines: true, ...verify };
  const config = {
    ...runConfig(),
    ...onRepository(place.url, { push: "never" }),
    verify: verifySchema.parse(settings),
  };
  const { items } = parseBatch(
    tasks.map((task, place) => JSON.stringify({ id: `${place + 1}`, task })).join("\n"),
  );
  await startBatch(services, {
    name,
    items: items.map((item) => ({
      ...item,
      start: { id: undefined, config, attachments: [], folder: undefined, task: item.task },
    })),
    concurrency,
    stopAfter: undefined,
    maxCostUsd: undefined,
    attempts: { deliver: { push: true, pr: "none" }, ...attempts },
  });
  return {
    name,
    client,
    ended: async () => {
      await client.workflow.getHandle(batchWorkflowId(name)).result();
      return readBatch(services, name);
    },
  };
}

const branches = ({ folder }: Remote) =>
  gitIn(folder, "for-each-ref", "--format=%(refname:short)", "refs/heads").split("\n");

it(
  "delivers the best of two that passed, with the files that were verified",
  { timeout: 240_000 },
  async () => {
    const place = makeRemote();
    const tasks = [
      "run: seq 20 > good\nsay: Long.",
      "run: seq 1 > bad\nsay: All tests pass.",
      "run: seq 3 > good; mkdir test; seq 50 > test/more\nsay: Short.",
    ];
    const { name, ended } = await attemptsAt(tasks, { place });
    expect(await ended()).toMatchObject({
      status: "completed",
      chosen: { sessionId: `${name}-3`, outcome: "passed", changedLines: 3 },
    });
    expect(branches(place)).toEqual([`longhaul/${name}-3`, "main"]);
    expect(await findSessionRow(database.store.db, `${name}-3`)).toMatchObject({
      status: "completed",
      result: "Short.",
      verified: "passed",
    });
  },
);

it("takes the larger number that the commands left", { timeout: 240_000 }, async () => {
  const place = makeRemote();
  const tasks = ["run: echo 7 > good\nsay: A.", "run: seq 40 > more; echo 12.5 > good\nsay: B."];
  const verify = { commands: ["cp good score"], result: "score" };
  const { name, ended } = await attemptsAt(tasks, { place, verify });
  expect(await ended()).toMatchObject({
    chosen: { sessionId: `${name}-2`, result: 12.5, why: "the largest result (12.5)" },
  });
});

it("chooses among the rest if a person cancels one", { timeout: 240_000 }, async () => {
  const place = makeRemote();
  const tasks = ["run: sleep 300\nsay: Never.", "run: touch good\nsay: Good.", "say: Bad."];
  const { name, client, ended } = await attemptsAt(tasks, { place, concurrency: 3 });
  const at = () => callRows(database.store, `${name}-1`, "running");
  await eventually("its command runs", async () => (await at()).length > 0, 120_000);
  await client.workflow.getHandle(`${name}-1`).cancel();
  const document = await ended();
  expect(document.items.map(({ status }) => status)).toEqual(["cancelled", "completed", "completed"]);
  expect(document).toMatchObject({ status: "completed", chosen: { sessionId: `${name}-2` } });
});

it("with `first` cancels the others as soon as one passed", { timeout: 240_000 }, async () => {
  const place = makeRemote();
  const tasks = ["run: sleep 300\nsay: Never.", "run: touch good\nsay: Good."];
  const { name, ended } = await attemptsAt(tasks, { place, attempts: { first: true } });
  const document = await ended();
  expect(document.items.map(({ status }) => status)).toEqual(["cancelled", "completed"]);
  expect(branches(place)).toEqual([`longhaul/${name}-2`, "main"]);
});

it("delivers no other if the best is refused", { timeout: 240_000 }, async () => {
  const place = makeRemote();
  writeFileSync(join(place.folder, "hooks", "pre-receive"), "#!/bin/sh\nexit 1\n", { mode: 0o755 });
  const tasks = ["run: touch good\nsay: A.", "run: touch good\nsay: B."];
  const { name, ended } = await attemptsAt(tasks, { place });
  expect(await ended()).toMatchObject({ status: "failed", chosen: { sessionId: `${name}-1` } });
  expect(branches(place)).toEqual(["main"]);
});

it("delivers nothing that is not verified if it is held", { timeout: 240_000 }, async () => {
  const place = makeRemote();
  const tasks = ["run: touch bad\nsay: A.", "run: touch worse\nsay: B."];
  const { ended } = await attemptsAt(tasks, { place, verify: { onFail: "hold" } });
  expect(await ended()).toMatchObject({ status: "failed", chosen: { isUnverified: true } });
  expect(branches(place)).toEqual(["main"]);
});
