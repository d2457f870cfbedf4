/** What tests wait for in a session's rows and in its run. */
import type { WorkflowExecutionDescription, WorkflowHandle } from "@temporalio/client";
import type { Store } from "../../activities/store/db.ts";
import { checkpoints } from "../../activities/store/schema/index.ts";
import { eq } from "drizzle-orm";
import { eventually } from "./eventually.ts";
import { callRows } from "./stored.ts";

/** A busy machine needs time to start a worker and a sandbox. */
const BUSY_MS = 120_000;

type Rows = Pick<Store, "db">;

/** Waits until so many calls have that status. */
export const untilCalls = (store: Rows, sessionId: string, status: "running" | "completed", count = 1) =>
  eventually(
    `${count} calls of ${sessionId} are ${status}`,
    async () => (await callRows(store, sessionId, status)).length >= count,
    BUSY_MS,
  );

/** Waits until so many workers have had the call at that place. */
export const untilTaken = (store: Rows, sessionId: string, fence: number, index = 0) =>
  eventually(
    `worker ${fence} has the call`,
    async () => (await callRows(store, sessionId))[index]?.fence === fence,
    BUSY_MS,
  );

export const untilStepSaved = ({ db }: Rows, sessionId: string, step: number) =>
  eventually(
    `step ${step} is saved`,
    async () => {
      const rows = await db.select().from(checkpoints).where(eq(checkpoints.sessionId, sessionId));
      return rows.some((row) => row.step === step);
    },
    BUSY_MS,
  );

type Pending = NonNullable<WorkflowExecutionDescription["raw"]["pendingActivities"]>[number];

/** Waits for an activity in a run's list of pending ones that `fits`. */
export const untilPending = (
  { handle }: { readonly handle: Pick<WorkflowHandle, "describe"> },
  what: string,
  fits: (activity: Pending) => boolean,
): Promise<Pending> =>
  eventually(what, async () => (await handle.describe()).raw.pendingActivities?.find(fits), BUSY_MS);
