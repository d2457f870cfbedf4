/**
 * Pinned sessions and a version that takes over, on a server that notifies runs of it (1.32 does; 1.29, of the release that Go builds,
 * does not). Left out where no wheel holds it for this machine.
 */
import { randomUUID } from "node:crypto";
import type { Worker } from "@temporalio/worker";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { AgentActivities } from "../../activities/contract/activities.ts";
import { answerQuestionUpdate, statusQuery, WORKFLOW_TYPE } from "../../workflows/messages.ts";
import { connectTo, type Connections } from "../support/connections.ts";
import { eventually } from "../support/eventually.ts";
import { answered, bashCall, fakeActivities } from "../support/fake-activities.ts";
import { quietRuntime } from "../support/quiet-runtime.ts";
import { newerTemporal, type OwnTemporal, startOwnTemporal } from "../support/own-temporal.ts";
import { makeCurrent } from "../support/versions.ts";
import { createTestWorker } from "../support/test-worker.ts";

const newer = await newerTemporal();

describe.skipIf(newer === undefined)("with Temporal's server 1.32", { timeout: 240_000 }, () => {
  let temporal: OwnTemporal;
  let connections: Connections;

  beforeAll(async () => {
    quietRuntime();
    temporal = await startOwnTemporal([], newer);
    connections = await connectTo(temporal.address);
  }, 300_000);
  afterAll(async () => {
    await connections?.close();
    await temporal?.close();
  });
  const workflows = () => connections.client.workflow;

  /** A queue and a deployment of their own, and workers of versions on them. */
  function fleet() {
    const [taskQueue, deployment] = [`q-${randomUUID()}`, `fleet-${randomUUID().slice(0, 8)}`];
    const running: { readonly worker: Worker; readonly run: Promise<void> }[] = [];
    return {
      deployment,
      worker: async (build: string, activities: AgentActivities) => {
        const environment = {
          LONGHAUL_DEPLOYMENT: deployment,
          LONGHAUL_BUILD_ID: build,
          LONGHAUL_VERSIONING: "pinned",
        };
        const connection = connections.native;
        const worker = await createTestWorker({ taskQueue, connection, activities, environment });
        running.push({ worker, run: worker.run() });
      },
      start: () =>
        workflows().start(WORKFLOW_TYPE, { workflowId: `v-${randomUUID()}`, taskQueue, args: [{}] }),
      close: async () => {
        for (const { worker } of running) worker.shutdown();
        await Promise.all(running.map(({ run }) => run));
      },
    };
  }

  it(
    "a session that waits for a person moves at its next task, question open, no answer lost",
    { tags: ["V2"] },
    async () => {
      const { deployment, worker, start, close } = fleet();
      const asked: string[] = [];
      const settled: string[] = [];
      const agents = ["v1", "v2"].map((build) => {
        const ask = { name: "ask_user", about: "Which?", by: "person" } as const;
        const fake = fakeActivities({ steps: [answered([bashCall, ask]), answered()] });
        const activities = { ...fake.activities };
        activities.modelStep = async (input) => {
          asked.push(`${build} step ${input.step}`);
          return input.step === 1 ? answered([bashCall, ask]) : answered();
        };
        activities.runTool = (input) => {
          asked.push(`${build} call ${input.index}`);
          return fake.activities.runTool(input);
        };
        activities.askPerson = async ({ step, index }) => {
          asked.push(`${build} asks`);
          const expiresInMs = 600_000;
          return {
            kind: "asked",
            question: { id: `q${step}-${index}`, kind: "ask", text: "Which?", expiresInMs },
          };
        };
        activities.settleQuestion = async ({ id, settlement }) => {
          settled.push(`${build} ${id} ${settlement.how}`);
          return { kind: "result", facts: { outcome: "completed", tokens: 1, ms: 0, hash: "answer" } };
        };
        return { fake, activities };
      });
      try {
        await worker("v1", agents[0]!.activities);
        await makeCurrent(connections.client, deployment, "v1");
        // The others are answered in the moment in which they move.
        const all = await Promise.all(Array.from({ length: 6 }, start));
        const [slow, ...quick] = all;
        if (slow === undefined) throw new Error("none");
        await eventually(
          "all have asked",
          () => asked.filter((what) => what === "v1 asks").length === 6,
          60_000,
        );
        const waits = async (session: Started) => (await viewOf(session)).status === "waiting";
        await eventually("all wait", async () => (await Promise.all(all.map(waits))).every(Boolean), 60_000);
        await worker("v2", agents[1]!.activities);
        await makeCurrent(connections.client, deployment, "v2");
        const nudge = ({ workflowId }: Started) => workflows().getHandle(workflowId).signal("nudge");
        const answer = ({ workflowId }: Started) =>
          workflows()
            .getHandle(workflowId)
            .executeUpdate(answerQuestionUpdate, { args: [{ text: "This." }] });
        await eventually(
          "one has gone over",
          async () => {
            await nudge(slow);
            return (await buildOf(slow)) === "v2";
          },
          60_000,
        );
        await Promise.all(quick.map((session) => Promise.all([nudge(session), answer(session)])));
        await eventually(
          "the first waits there",
          async () => (await viewOf(slow)).questions.length === 1,
          60_000,
        );
        await answer(slow);
        for (const { workflowId } of all)
          expect(await workflows().getHandle(workflowId).result()).toMatchObject({ status: "completed" });
        // Each answer counts once, and nothing was done again.
        expect(settled.map((what) => what.slice(3))).toEqual(
          Array.from({ length: 6 }, () => "q1-1 answered"),
        );
        expect(settled).toContain("v2 q1-1 answered");
        const done = (what: string) => asked.filter((event) => event.endsWith(what)).length;
        expect([done("step 1"), done("call 0"), done("step 2")]).toEqual([6, 6, 6]);
      } finally {
        await close();
      }
    },
  );

  type Started = Awaited<ReturnType<ReturnType<typeof fleet>["start"]>>;
  const viewOf = ({ workflowId }: Started) => workflows().getHandle(workflowId).query(statusQuery);
  const buildOf = async ({ workflowId }: Started) => {
    const { raw } = await workflows().getHandle(workflowId).describe();
    return raw.workflowExecutionInfo?.versioningInfo?.deploymentVersion?.buildId;
  };

  it(
    "a pinned session moves to the new version at its next step, and asks nothing twice",
    { tags: ["V1"] },
    async () => {
      const { deployment, worker, start, close } = fleet();
      const asked: string[] = [];
      const last = () => Math.max(0, ...asked.map((what) => Number(what.split(" ").at(-1))));
      // It works on until it has gone over, and two steps more.
      const agents = ["v1", "v2"].map((build) => {
        const fake = fakeActivities({ steps: [answered()] });
        const activities = { ...fake.activities };
        let steps = 0;
        activities.modelStep = async ({ step }) => {
          asked.push(`${build} step ${step}`);
          await new Promise((resolve) => setTimeout(resolve, 50));
          return build === "v2" && ++steps === 2 ? answered() : answered([bashCall]);
        };
        return activities;
      });
      try {
        await worker("v1", agents[0]!);
        await makeCurrent(connections.client, deployment, "v1");
        const handle = await start();
        await eventually("the first step is under way", () => asked.length > 0, 60_000);
        await worker("v2", agents[1]!);
        await makeCurrent(connections.client, deployment, "v2");
        const { workflowId } = handle;
        expect(await workflows().getHandle(workflowId).result()).toMatchObject({ status: "completed" });
        const steps = Array.from({ length: last() }, (_, index) => index + 1);
        expect(asked).toEqual(steps.map((step) => `${step > last() - 2 ? "v2" : "v1"} step ${step}`));
        const { runId } = await workflows().getHandle(workflowId).describe();
        expect(runId).not.toBe(handle.firstExecutionRunId);
        expect(await buildOf(handle)).toBe("v2");
      } finally {
        await close();
      }
    },
  );
});
