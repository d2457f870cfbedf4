/** A follower on a real Temporal server, with activities that answer from memory. */
import { randomUUID } from "node:crypto";
import type { WorkflowHandle } from "@temporalio/client";
import {
  FOLLOW_WORKFLOW_TYPE,
  followWorkflowId,
  type FollowActivities,
  type FollowLook,
  type FollowOrder,
} from "../../activities/contract/follow.ts";
import { answered, fakeActivities, sessionHere, type FakeOptions } from "./fake-activities.ts";
import { playConnections, workerOn } from "./play-loop.ts";

/** Longer than any test: only a signal, or a session's end, has it look again. */
const LATER_MS = 3_600_000;
export const waits = (line: string, more: { readonly isPaused?: true } = {}): FollowLook => ({
  kind: "wait",
  lookMs: LATER_MS,
  line,
  ...more,
});
export const merged: FollowLook = { kind: "over", end: "merged", line: "it was merged" };

interface PlayedFollower {
  readonly result: unknown;
  /** The activities in order, with what they were given. */
  readonly done: readonly string[];
  readonly sessions: readonly string[];
  /** What the sessions' runs returned. */
  readonly outcomes: readonly unknown[];
  readonly handle: WorkflowHandle;
  /** Whether it went on in another run. */
  readonly isContinued: boolean;
}

/** @param looks what each look comes to, from its number from 1 */
export async function playFollower(
  looks: (number: number, sessionId: string) => FollowLook,
  during: (handle: WorkflowHandle, done: readonly string[]) => Promise<void> = async () => {},
  {
    input = {},
    open,
    step = () => Promise.resolve(answered([])),
  }: {
    readonly input?: object;
    readonly open?: (order: FollowOrder) => void;
    /** Of the session. */
    readonly step?: FakeOptions["steps"][number];
  } = {},
): Promise<PlayedFollower> {
  const { client } = await playConnections();
  const sessionId = `play-${randomUUID().slice(0, 8)}`;
  const [done, sessions]: [string[], string[]] = [[], []];
  const fake = fakeActivities({ steps: [step] });
  const agent = { ...fake.activities };
  agent.openSession = async (given) => {
    sessions.push(sessionHere());
    return fake.activities.openSession(given);
  };
  let looked = 0;
  const follow: FollowActivities = {
    async openFollow(order) {
      done.push(`open ${JSON.stringify(order)}`);
      open?.(order);
    },
    async lookAtPullRequest() {
      looked += 1;
      done.push("look");
      return looks(looked, sessionId);
    },
    async closeFollow({ end, why }) {
      done.push(why === undefined ? `close ${end}` : `close ${end}: ${why}`);
      return { end, rounds: sessions.length };
    },
    async notifyFollow({ event }) {
      done.push(event);
    },
  };
  const taskQueue = `follow-${randomUUID()}`;
  const worker = await workerOn(taskQueue, { ...agent, ...follow });
  return worker.runUntil(async () => {
    const handle = await client.workflow.start(FOLLOW_WORKFLOW_TYPE, {
      workflowId: followWorkflowId(sessionId),
      taskQueue,
      args: [input],
    });
    await during(handle, done);
    const result: unknown = await handle.result().catch((error: unknown) => error);
    const runs = sessions.map((id) => client.workflow.getHandle(id).result() as Promise<unknown>);
    const outcomes = (await Promise.allSettled(runs)).map((run) =>
      run.status === "fulfilled" ? run.value : (run.reason as unknown),
    );
    const { runId } = await client.workflow.getHandle(handle.workflowId).describe();
    return { result, done, sessions, outcomes, handle, isContinued: runId !== handle.firstExecutionRunId };
  });
}

/** What a look says that tells the session something. */
export const round = (sessionId: string): FollowLook => ({
  kind: "round",
  round: 1,
  lookMs: LATER_MS,
  line: "round 1",
  sessionId,
  about: "round 1: the check build failed",
});
