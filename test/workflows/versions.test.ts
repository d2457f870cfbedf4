/**
 * Pinned sessions and a version that takes over, on a server that tells runs of it (from 1.31 on; the development server of the other
 * tests does not). Its server is built once, by `npm run bench -- --only scale` or `npm run chaos`; without it this is left out.
 */
import { randomUUID } from "node:crypto";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { Client, Connection } from "@temporalio/client";
import { NativeConnection, Worker } from "@temporalio/worker";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import type { AgentActivities, ModelStepFacts } from "../../activities/contract/activities.ts";
import { cacheFolder } from "../../client/setup/temporal-binary.ts";
import { readWorkerConfig } from "../../worker/config.ts";
import { dataConverter } from "../../worker/connect/data-converter.ts";
import { workerOptions } from "../../worker/worker-options.ts";
import { WORKFLOW_TYPE } from "../../workflows/messages.ts";
import { eventually } from "../support/eventually.ts";
import { answered, bashCall, fakeActivities } from "../support/fake-activities.ts";
import { quietRuntime } from "../support/quiet-runtime.ts";
import { SERVER_VERSION } from "../support/temporal-server/programs.ts";
import { startPostgresTemporal, type PostgresTemporal } from "../support/temporal-server/start.ts";
import { makeCurrent } from "../support/versions.ts";

const isBuilt = existsSync(join(cacheFolder(), `temporal-server-v${SERVER_VERSION}`));

describe.skipIf(!isBuilt)(`with Temporal's server ${SERVER_VERSION}, which is built`, () => {
  let temporal: PostgresTemporal;
  let native: NativeConnection;
  let client: Client;

  beforeAll(async () => {
    quietRuntime();
    temporal = await startPostgresTemporal({ durable: false, say: () => undefined });
    native = await NativeConnection.connect({ address: temporal.address });
    client = new Client({
      connection: await Connection.connect({ address: temporal.address }),
      dataConverter,
    });
  }, 300_000);
  afterAll(async () => {
    await client?.connection.close();
    await native?.close();
    await temporal?.close();
  });

  /** A queue and a deployment of their own, and workers of versions on them. */
  function fleet() {
    const [taskQueue, deployment] = [`q-${randomUUID()}`, `fleet-${randomUUID().slice(0, 8)}`];
    const running: { readonly worker: Worker; readonly run: Promise<void> }[] = [];
    return {
      deployment,
      async worker(build: string, activities: AgentActivities) {
        const [options] = workerOptions({
          config: readWorkerConfig({
            DATABASE_URL: "postgres://unused",
            LONGHAUL_TASK_QUEUE: taskQueue,
            LONGHAUL_SHUTDOWN_GRACE_MS: "100",
            LONGHAUL_DEPLOYMENT: deployment,
            LONGHAUL_BUILD_ID: build,
            LONGHAUL_VERSIONING: "pinned",
          }),
          connection: native,
          namespace: "default",
          bundle: { codePath: inject("workflowBundle") },
          activities,
        });
        if (options === undefined) throw new Error("no worker");
        const worker = await Worker.create(options);
        running.push({ worker, run: worker.run() });
      },
      start: () =>
        client.workflow.start(WORKFLOW_TYPE, { workflowId: `v-${randomUUID()}`, taskQueue, args: [{}] }),
      async close() {
        for (const { worker } of running) worker.shutdown();
        await Promise.all(running.map(({ run }) => run));
      },
    };
  }

  it("a pinned session goes to the new version at its next step, and asks its model nothing twice [V1]", async () => {
    const { deployment, worker, start, close } = fleet();
    const asked: string[] = [];
    let letGo = () => {};
    const gate = new Promise<void>((resolve) => (letGo = resolve));
    const steps = (build: string, first?: Promise<void>): (() => Promise<ModelStepFacts>)[] => [
      async () => {
        await first;
        return answered([bashCall]);
      },
      async () => (asked.length > 3 ? answered() : answered([bashCall])),
    ];
    const agents = ["v1", "v2"].map((build) => {
      const fake = fakeActivities({ steps: steps(build, build === "v1" ? gate : undefined) });
      const activities = { ...fake.activities };
      activities.modelStep = (input) => {
        asked.push(`${build} step ${input.step}`);
        return fake.activities.modelStep(input);
      };
      return { fake, activities };
    });
    try {
      await worker("v1", agents[0]!.activities);
      await makeCurrent(client, deployment, "v1");
      const handle = await start();
      await eventually("the first step is under way", () => asked.length === 1, 60_000);
      await worker("v2", agents[1]!.activities);
      await makeCurrent(client, deployment, "v2");
      letGo();
      expect(await client.workflow.getHandle(handle.workflowId).result()).toMatchObject({
        status: "completed",
      });
      expect(asked).toEqual(["v1 step 1", "v2 step 2", "v2 step 3", "v2 step 4"]);
      const { raw, runId } = await client.workflow.getHandle(handle.workflowId).describe();
      expect(runId).not.toBe(handle.firstExecutionRunId);
      expect(raw.workflowExecutionInfo?.versioningInfo?.deploymentVersion?.buildId).toBe("v2");
    } finally {
      letGo();
      await close();
    }
  });
});
