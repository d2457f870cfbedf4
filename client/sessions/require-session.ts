/** The session a command is about. */
import { findSession, type SessionRow } from "../../activities/store/reading.ts";
import type { Services } from "../connect/connection.ts";
import { noSuchSession } from "../console/errors.ts";
import { isMissingTable } from "./start-session.ts";

/** @throws ClientError (impossible) where there is none */
export async function requireSession(services: Pick<Services, "store">, id: string): Promise<SessionRow> {
  const row = await findSession(services.store.db, id).catch((error: unknown) => {
    // A database that no worker has ever used holds no session.
    if (isMissingTable(error)) return undefined;
    throw error;
  });
  if (row === undefined) throw noSuchSession(id);
  return row;
}
