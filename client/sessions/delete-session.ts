/** Deletes a session that does not run: its rows, its delegates, and its histories in Temporal. */
import { deleteFamily, readFamily, type FamilyMember } from "../../activities/store/delete-session.ts";
import type { SessionRow } from "../../activities/store/reading.ts";
import { forgetHistories, type Forgotten } from "../../temporal/runs.ts";
import type { Services } from "../connect/connection.ts";
import { describeRun } from "../connect/describe-run.ts";
import { missing, notPossible } from "../console/errors.ts";

export interface Deleted {
  readonly ids: readonly string[];
  readonly histories: Forgotten;
}

/**
 * @throws ClientError (impossible) if it runs, or is another session's delegate; (missing) if Temporal does not answer
 *   whether it runs
 */
export async function deleteSession(services: Services, row: SessionRow): Promise<Deleted> {
  const { store, temporal, user } = services;
  const family = await idleFamily(services, row);
  const deletion = await deleteFamily(store.db, family, user);
  if (deletion.kind === "changed") throw running(row.id, row.id);
  const { ids, runs } = deletion;
  return { ids, histories: await forgetHistories(await temporal.client(), ids, runs) };
}

/**
 * A session with its delegates, none of which runs.
 * @throws ClientError as `deleteSession`
 */
export async function idleFamily(services: Services, row: SessionRow): Promise<FamilyMember[]> {
  const { store, temporal } = services;
  if (row.parentId !== null)
    throw notPossible(
      `${row.id} is a delegate of ${row.parentId}, whose conversation refers to it: nothing was changed.`,
      `Delete that one, which includes its delegates: ${row.parentId}`,
    );
  const family = await readFamily(store.db, row.id);
  for (const { id } of family) {
    const run = await describeRun(temporal, id);
    if (run === undefined)
      throw missing(
        `Temporal does not say whether ${id} runs: nothing was changed.`,
        "Try again when it answers: longhaul doctor",
      );
    if (run.status === "RUNNING") throw running(row.id, id);
  }
  return family;
}

/** @param which the session that runs: itself, or a delegate */
export function running(id: string, which: string) {
  return notPossible(
    which === id
      ? `${id} runs: nothing was changed.`
      : `${which}, a delegate of ${id}, runs: nothing was changed.`,
    `End it first: longhaul cancel ${id}`,
  );
}
