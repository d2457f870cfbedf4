/** The loop on a real Temporal server with scripted activities: workflow tests without anything else. */
import { randomUUID } from "node:crypto";
import type { Client } from "@temporalio/client";
import type { Worker } from "@temporalio/worker";
import { inject } from "vitest";
import type { AgentActivities, ClosedSession } from "../../activities/contract/activities.ts";
import type { BatchActivities } from "../../activities/contract/batch.ts";
import type { FollowActivities } from "../../activities/contract/follow.ts";
import type { codingAgent } from "../../workflows/index.ts";
import type { CodingAgentInput } from "../../workflows/run-input.ts";
import { connectTo, type Connections } from "./connections.ts";
import { fakeActivities, type FakeActivities, type FakeOptions } from "./fake-activities.ts";
import { quietRuntime } from "./quiet-runtime.ts";
import { createTestWorker } from "./test-worker.ts";

export type Handle = Awaited<ReturnType<typeof start>>;

interface Failure {
  readonly cause?: { readonly type?: string; readonly message?: string; readonly name?: string };
}

export interface Played {
  readonly taskQueue: string;
  readonly fake: FakeActivities;
  readonly handle: Handle;
  readonly value: ClosedSession | undefined;
  readonly failure: Failure | undefined;
}

export interface PlayOptions extends FakeOptions {
  readonly whileClosing?: (handle: Handle) => Promise<void>;
  /** Activities that replace the usual ones. */
  readonly activities?: Partial<AgentActivities>;
}

// Shared by all tests of a process; they end with it.
let connecting: Promise<Connections> | undefined;

/** The connections that all tests of a process share. */
export const playConnections = (): Promise<Connections> => (connecting ??= connect());

async function connect(): Promise<Connections> {
  quietRuntime();
  return connectTo(inject("temporalAddress"));
}

/**
 * Runs a session to its end on its own worker.
 * @param during runs in parallel once the session has started; `startAnother` starts one more session on the same worker
 */
export async function play(
  options: PlayOptions,
  during: (
    handle: Handle,
    fake: FakeActivities,
    startAnother: () => Promise<Handle>,
  ) => Promise<void> = async () => {},
  input: CodingAgentInput = {},
): Promise<Played> {
  const { client } = await (connecting ??= connect());
  const fake = fakeActivities(options);
  const closing = fake.activities.closeSandbox.bind(fake.activities);
  let started: Handle | undefined;
  fake.activities.closeSandbox = async (input) => {
    if (started) await options.whileClosing?.(started);
    return closing(input);
  };
  const taskQueue = `loop-${randomUUID()}`;
  const worker = await workerOn(taskQueue, { ...fake.activities, ...options.activities });
  return worker.runUntil(async () => {
    const handle = await start(client, taskQueue, input);
    started = handle;
    await during(handle, fake, () => start(client, taskQueue, {}));
    const ended = await handle.result().then(
      (value) => ({ value, failure: undefined }),
      (error: unknown) => ({ value: undefined, failure: error as Failure }),
    );
    return { taskQueue, fake, handle, ...ended };
  });
}

/**
 * As `play`, on two workers one after the other.
 * @param between runs while there is no worker
 * @param until when the first one ends
 */
export async function playTwice(
  options: FakeOptions,
  between: (handle: Handle, client: Client) => Promise<void>,
  until: () => Promise<unknown>,
): Promise<Pick<Played, "fake" | "value">> {
  const { client } = await (connecting ??= connect());
  const fake = fakeActivities(options);
  const taskQueue = `loop-${randomUUID()}`;
  const first = await workerOn(taskQueue, fake.activities);
  const handle = await start(client, taskQueue, {});
  await first.runUntil(until);
  await between(handle, client);
  const second = await workerOn(taskQueue, fake.activities);
  return { fake, value: await second.runUntil(handle.result()) };
}

export async function workerOn(
  taskQueue: string,
  activities: AgentActivities & Partial<BatchActivities & FollowActivities>,
): Promise<Worker> {
  const { native } = await (connecting ??= connect());
  return createTestWorker({ taskQueue, connection: native, activities });
}

function start(client: Client, taskQueue: string, input: CodingAgentInput) {
  return client.workflow.start<typeof codingAgent>("codingAgent", {
    workflowId: `loop-${randomUUID()}`,
    taskQueue,
    args: [input],
  });
}
