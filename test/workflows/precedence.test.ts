/** Priorities and turns of tenants on a server that knows them, with one slot for all activities. */
import { Context } from "@temporalio/activity";
import type { WorkflowHandle } from "@temporalio/client";
import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, expect, it, onTestFinished } from "vitest";
import type { RunConfig } from "../../activities/config/agent-config.ts";
import { toPrecedence } from "../../activities/config/precedence.ts";
import { workflowOptions } from "../../client/sessions/start-session.ts";
import { SEARCH_ATTRIBUTES } from "../../temporal/search-attributes.ts";
import { WORKFLOW_TYPE } from "../../workflows/messages.ts";
import { runConfig } from "../support/agent-harness.ts";
import { connectTo, type Connections } from "../support/connections.ts";
import { eventually } from "../support/eventually.ts";
import { answered, fakeActivities, sessionHere } from "../support/fake-activities.ts";
import { startOwnTemporal, type OwnTemporal } from "../support/own-temporal.ts";
import { quietRuntime } from "../support/quiet-runtime.ts";
import { createTestWorker } from "../support/test-worker.ts";

let temporal: OwnTemporal;
let connections: Connections;

beforeAll(async () => {
  quietRuntime();
  temporal = await startOwnTemporal([
    "matching.useNewMatcher=true",
    "matching.enableFairness=true",
    // Turns are taken by partition; the server has four of each queue otherwise.
    "matching.numTaskqueueReadPartitions=1",
    "matching.numTaskqueueWritePartitions=1",
  ]);
  connections = await connectTo(temporal.address);
  const searchAttributes = Object.fromEntries(SEARCH_ATTRIBUTES.map((name) => [name, 2]));
  await connections.native.operatorService.addSearchAttributes({ namespace: "default", searchAttributes });
});
afterAll(async () => {
  await connections.close();
  await temporal.close();
});

type Precedence = Pick<RunConfig, "priority" | "tenant">;

/** A worker with one slot for activities, whose model answers only while its gate is open. */
async function slowWorker() {
  const { native, client } = connections;
  const taskQueue = `turns-${randomUUID()}`;
  const order: string[] = [];
  let places = 0;
  const waiting: { readonly id: string; readonly go: () => void }[] = [];
  const known = new Map<string, Precedence>();
  const fake = fakeActivities({
    steps: [
      async () => {
        order.push(sessionHere());
        if (places > 0) places -= 1;
        else {
          const id = sessionHere();
          await Promise.race([
            new Promise<void>((go) => waiting.push({ id, go })),
            Context.current().cancelled,
          ]);
        }
        return answered();
      },
    ],
  });
  const activities = { ...fake.activities };
  activities.openSession = async (input) => {
    const opened = await fake.activities.openSession(input);
    const { tenant } = known.get(sessionHere()) ?? {};
    const policy = { ...opened.policy, searchAttributes: true, ...(tenant === undefined ? {} : { tenant }) };
    return {
      ...opened,
      policy: { ...policy, takesTurns: true, timeouts: { ...policy.timeouts, modelMs: 120_000 } },
    };
  };
  const environment = { LONGHAUL_ACTIVITY_SLOTS: "1" };
  const worker = await createTestWorker({ taskQueue, connection: native, activities, environment });
  const running = worker.run();
  onTestFinished(async () => {
    for (const { go } of waiting) go();
    places = Infinity;
    worker.shutdown();
    await running;
  });
  return {
    order,
    /** So many steps end. */
    let: (count: number) => {
      const now = waiting.splice(0, count);
      places += count - now.length;
      for (const { go } of now) go();
    },
    /** The step that waits ends, if it is another session's: one that ended unseen would be waited for in vain. */
    letOther: (session: string) => {
      if (waiting[0]?.id !== session) waiting.shift()?.go();
    },
    async start(name: string, precedence: Precedence) {
      const id = `${name}-${randomUUID().slice(0, 8)}`;
      known.set(id, precedence);
      const config = { ...runConfig(), ...precedence };
      return client.workflow.start(WORKFLOW_TYPE, {
        ...workflowOptions({ taskQueue, installation: "ours" }, id, { task: name, config }),
        args: [{}],
      });
    },
  };
}

/** Lets one step after the other end until the session's own first step waits in the queue. */
async function untilQueued({ letOther }: Awaited<ReturnType<typeof slowWorker>>, session: WorkflowHandle) {
  await eventually(
    "its step is in the queue",
    async () => {
      const { raw } = await session.describe();
      const pending = raw.pendingActivities ?? [];
      if (pending.some(({ activityType }) => activityType?.name === "modelStep")) return true;
      // Only while it waits for a turn: what its workflow takes is no other's.
      if (pending.length > 0) letOther(session.workflowId);
      return false;
    },
    60_000,
  );
}

/**
 * How many steps of others, fifty of them, begin before the session's own: since that is in the queue, and since the session was
 * started, whose first activity waits for its turn, too.
 * @param others what those ask for
 */
async function stepsBefore(others: Precedence, own: Precedence) {
  const worker = await slowWorker();
  await Promise.all(Array.from({ length: 50 }, () => worker.start("other", others)));
  await eventually("a step is under way", () => worker.order.length === 1, 60_000);
  worker.let(5);
  await eventually("steps go on", () => worker.order.length === 6, 60_000);
  const started = worker.order.length;
  const session = await worker.start("own", own);
  await untilQueued(worker, session);
  const queued = worker.order.length;
  worker.let(60);
  const place = () => worker.order.findIndex((id) => id.startsWith("own"));
  await eventually("it was its turn", () => place() !== -1, 60_000);
  if (own.tenant !== undefined) {
    const { searchAttributes } = await session.describe();
    expect(searchAttributes).toMatchObject({ AgentTenant: [own.tenant] });
  }
  // Its step may have begun by the time that it is seen in the queue.
  return { sinceQueued: Math.max(0, place() - queued), sinceStarted: place() - started };
}

/** Of its waits, a minute each at most; fifty sessions open one after the other. */
const TIMEOUT_MS = 240_000;

it(
  "a session of priority 1 is the next at a model after fifty of priority 5",
  { tags: ["T3"], timeout: TIMEOUT_MS },
  async () => {
    // The one slot may have its next task already.
    const { sinceQueued } = await stepsBefore({ priority: 5 }, { priority: 1 });
    expect(sinceQueued).toBeLessThanOrEqual(1);
  },
);

it(
  "a tenant's one session is among the next three after fifty of another tenant",
  { tags: ["T2"], timeout: TIMEOUT_MS },
  async () => {
    const { sinceQueued, sinceStarted } = await stepsBefore({ tenant: "a" }, { tenant: "b" });
    expect(sinceQueued).toBeLessThan(3);
    expect(sinceStarted).toBeLessThan(20);
  },
);

it("a session of the same tenant waits behind them all", { timeout: TIMEOUT_MS }, async () => {
  const { sinceStarted } = await stepsBefore({ tenant: "a" }, { tenant: "a" });
  expect(sinceStarted).toBeGreaterThan(20);
});

it("what a session asks for is what Temporal gets, and nothing if it asks for nothing", () => {
  expect(toPrecedence({})).toBeUndefined();
  expect(toPrecedence({ priority: 1, tenant: "a" })).toEqual({ priorityKey: 1, fairnessKey: "a" });
});
