/** Deletes a session that does not run: its rows, its delegates, and what Temporal holds of it. */
import { deleteFamily, readFamily } from "../../activities/store/delete-session.ts";
import type { SessionRow } from "../../activities/store/reading.ts";
import { forgetHistories, type Forgotten } from "../../worker/connect/forget-histories.ts";
import type { Services } from "../connect/connection.ts";
import { describeRun } from "../connect/describe-run.ts";
import { missing, notPossible } from "../console/errors.ts";

export interface Deleted {
  /** The session and its delegates. */
  readonly ids: readonly string[];
  readonly histories: Forgotten;
}

/**
 * @throws ClientError (impossible) where it runs, or is another session's delegate; (missing) where Temporal cannot say
 *   whether it runs
 */
export async function deleteSession(services: Services, row: SessionRow): Promise<Deleted> {
  const { store, temporal, user } = services;
  if (row.parentId !== null)
    throw notPossible(
      `${row.id} is a delegate of ${row.parentId}, whose conversation refers to it.`,
      `Delete that one, which takes its delegates along: longhaul delete ${row.parentId}`,
    );
  const family = await readFamily(store.db, row.id);
  for (const { id } of family) {
    const run = await describeRun(temporal, id);
    if (run === undefined)
      throw missing(
        `Temporal does not say whether ${id} runs: nothing was deleted.`,
        "Try again when it answers: longhaul doctor",
      );
    if (run.status === "RUNNING") throw running(row.id, id);
  }
  const deletion = await deleteFamily(store.db, family, user);
  if (deletion.kind === "changed") throw running(row.id, row.id);
  const { ids, runs } = deletion;
  return { ids, histories: await forgetHistories(await temporal.client(), ids, runs) };
}

function running(id: string, which: string) {
  return notPossible(
    which === id
      ? `${id} runs: nothing was deleted.`
      : `${which}, a delegate of ${id}, runs: nothing was deleted.`,
    `End it first: longhaul cancel ${id}`,
  );
}
