/** A session with two workers, and which of them is running an activity. */
import { eventually } from "./eventually.ts";
import { startKillableSession, type KillableSession } from "./killable-session.ts";
import type { ModelScript } from "./scripted-model.ts";
import type { TestDatabase } from "./test-database.ts";
import type { WorkerProcess } from "./worker-process.ts";

/** Started, and closed with the test. */
export async function startWithTwo(
  database: TestDatabase,
  script: ModelScript,
  environment: Readonly<Record<string, string>> = {},
) {
  const session = await startKillableSession(database, script, { environment });
  const workers = await Promise.all([session.startWorker(), session.startWorker()]);
  return { session, workers };
}

/** The worker that now runs an activity of that type. */
export async function busyWith(
  session: KillableSession,
  workers: readonly WorkerProcess[],
  type: string,
): Promise<WorkerProcess> {
  return eventually(
    `${type} is under way`,
    async () => {
      const { raw } = await session.handle.describe();
      const pending = raw.pendingActivities?.find((activity) => activity.activityType?.name === type);
      const identity = pending?.lastWorkerIdentity ?? "";
      return pending?.state === 2 ? workers.find(({ pid }) => identity.startsWith(`${pid}.`)) : undefined;
    },
    60_000,
  );
}
