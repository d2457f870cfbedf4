/** A batch on a real Temporal server, with activities that answer from memory: histories, cancels, what is stopped. */
import { randomUUID } from "node:crypto";
import { Context } from "@temporalio/activity";
import { WorkflowFailedError } from "@temporalio/client";
import { expect, it } from "vitest";
import {
  batchWorkflowId,
  type BatchActivities,
  type BatchFigures,
  type ClosedBatch,
  type CloseReason,
  type EndedItem,
  batchStatus,
} from "../../activities/contract/batch.ts";
import type { SessionBatchInput } from "../../workflows/session-batch.ts";
import { eventually } from "../support/eventually.ts";
import { answered, fakeActivities, sessionHere } from "../support/fake-activities.ts";
import { playConnections, workerOn } from "../support/play-loop.ts";

interface Options {
  readonly items: number;
  readonly concurrency: number;
  readonly stopAfter?: number;
  readonly input?: SessionBatchInput;
  /** Places of items whose sessions completed before, without a word to any run of the batch. */
  readonly completed?: readonly number[];
  /** The end of a session, by its number from 1; it comes once this resolves. */
  readonly end?: (ordinal: number) => Promise<"completed" | "failed">;
}

/** What the rows would hold. */
async function playBatch(
  { items, concurrency, stopAfter, input = {}, completed: before = [], end }: Options,
  during?: (batch: {
    readonly id: string;
    readonly begun: () => number;
    readonly reported: () => number;
  }) => Promise<void>,
) {
  const { client } = await playConnections();
  const name = `play-${randomUUID().slice(0, 8)}`;
  const ended = new Map<string, EndedItem>();
  let reported = 0;
  for (const place of before)
    ended.set(`${name}-${place}`, { sessionId: `${name}-${place}`, status: "completed" });
  const running = new Set<string>();
  const [figures, begun]: [{ most: number; reasons: CloseReason[] }, string[]] = [
    { most: 0, reasons: [] },
    [],
  ];
  const fake = fakeActivities({
    steps: [
      async () => {
        const { cancelled, heartbeat } = Context.current();
        const beat = setInterval(() => heartbeat(), 50);
        const asked = end?.(Number(sessionHere().split("-").at(-1)));
        const how = await Promise.race([asked, cancelled]).finally(() => clearInterval(beat));
        return answered([], how === "failed" ? { finish: "content-filter" } : {});
      },
    ],
  });
  const agent = { ...fake.activities };
  agent.openSession = async (given) => {
    running.add(sessionHere());
    begun.push(sessionHere());
    figures.most = Math.max(figures.most, running.size);
    return fake.activities.openSession(given);
  };
  agent.closeSession = async (given) => {
    const { status, error } = given;
    running.delete(sessionHere());
    ended.set(sessionHere(), { sessionId: sessionHere(), status, failure: error ? error.type : undefined });
    return fake.activities.closeSession(given);
  };
  const now = (): BatchFigures => {
    const all = [...ended.values()];
    const completed = all.filter(({ status }) => status === "completed").length;
    return { total: items, completed, failed: all.length - completed, waits: 0, costUsd: 0 };
  };
  const batch: BatchActivities = {
    async lookAtBatch({ open, cancel }) {
      if (cancel) for (const id of open) await client.workflow.getHandle(id).cancel();
      const news = open.flatMap((id) => ended.get(id) ?? []);
      reported += news.length;
      return {
        ended: news,
        figures: now(),
        concurrency,
        lookMs: 200,
        stopAfter,
      };
    },
    async takeBatchItems({ after, count }) {
      const ordinals = Array.from({ length: items - after }, (_, place) => after + place + 1).slice(0, count);
      return ordinals.map((ordinal) => ({
        ordinal,
        sessionId: `${name}-${ordinal}`,
        about: "a task",
        begun: before.includes(ordinal) ? true : undefined,
      }));
    },
    chooseAttempt: () => Promise.resolve(undefined),
    async closeBatch({ reason }) {
      figures.reasons.push(reason);
      return { status: batchStatus(reason, now()), ...now() };
    },
  };
  const taskQueue = `batch-${randomUUID()}`;
  const worker = await workerOn(taskQueue, { ...agent, ...batch });
  return worker.runUntil(async () => {
    const id = batchWorkflowId(name);
    const handle = await client.workflow.start("sessionBatch", { workflowId: id, taskQueue, args: [input] });
    await during?.({ id, begun: () => begun.length, reported: () => reported });
    const result = await handle.result().then(
      (value: ClosedBatch) => value,
      (error: unknown) => error,
    );
    const { runId } = await client.workflow.getHandle(id).describe();
    return { result, begun, ...figures, first: handle.firstExecutionRunId, last: runId };
  });
}

it("goes through several histories, each session begun once, and never too many at once", async () => {
  const { result, begun, most, first, last } = await playBatch({
    items: 12,
    concurrency: 3,
    input: { maxHistoryEvents: 60 },
    completed: [2],
  });
  expect(result).toEqual({ status: "completed", total: 12, completed: 12, failed: 0, waits: 0, costUsd: 0 });
  expect(begun).toHaveLength(11);
  expect(new Set(begun).size).toBe(11);
  expect(most).toBeLessThanOrEqual(3);
  expect(last).not.toBe(first);
});

it("stops after failures of one kind in a row, and lets what runs end", async () => {
  const slow = Promise.withResolvers<"completed">();
  const { result, begun, reasons } = await playBatch(
    {
      items: 9,
      concurrency: 2,
      stopAfter: 3,
      end: async (ordinal) => (ordinal === 1 ? slow.promise : "failed"),
    },
    async ({ reported }) => {
      await eventually("it knows of three failures", () => Promise.resolve(reported() === 3)).finally(() =>
        slow.resolve("completed"),
      );
    },
  );
  expect(result).toMatchObject({ status: "stopped", completed: 1, failed: 3 });
  expect(begun).toHaveLength(4);
  expect(reasons).toEqual(["failures"]);
});

it("cancels its sessions when it is cancelled, and begins no other", async () => {
  const never = new Promise<"completed">(() => undefined);
  const { client } = await playConnections();
  const { result, begun, reasons } = await playBatch(
    { items: 5, concurrency: 2, end: () => never },
    async ({ id, begun: count }) => {
      await eventually("two run", () => Promise.resolve(count() === 2));
      await client.workflow.getHandle(id).cancel();
    },
  );
  expect(result).toBeInstanceOf(WorkflowFailedError);
  expect(begun).toHaveLength(2);
  expect(reasons).toEqual(["cancelled"]);
});
