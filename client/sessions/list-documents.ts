/** Sessions, newest first, each as the document that `status` and `list` show. */
import { listSessions, readFigures, type Listing, type SessionRow } from "../../activities/store/reading.ts";
import { withTimeout } from "../../worker/connect/with-timeout.ts";
import type { Services } from "../connect/connection.ts";
import { describeRun } from "../connect/describe-run.ts";
import { findByReference } from "../lookup/find-by-reference.ts";
import { hasEnded } from "./start-session.ts";
import { statusDocument, type SessionStatusDocument } from "./status-document.ts";
import { unlessTableMissing } from "../lookup/unless-table-missing.ts";

/** @throws ClientError (impossible) if there is no such parent */
export async function listDocuments(services: Services, listing: Listing): Promise<SessionStatusDocument[]> {
  const { db } = services.store;
  const rows = (await unlessTableMissing(() => listed(db, listing))) ?? [];
  const ids = rows.map(({ id }) => id);
  const { sessionSizes } = await import("../../activities/context/session-sizes.ts");
  const [figures, sizes, closed] = await Promise.all([
    readFigures(db, ids),
    sessionSizes(db, ids),
    closedRuns(services, rows),
  ]);
  return rows.map((row) => statusDocument(row, figures.get(row.id), sizes.get(row.id), closed.get(row.id)));
}

async function listed(db: Services["store"]["db"], { parent, ...listing }: Listing): Promise<SessionRow[]> {
  if (parent === undefined) return listSessions(db, listing);
  return listSessions(db, { ...listing, parent: (await findByReference(db, parent)).id });
}

/** Runs that Temporal has closed although their session's row is open: checked for the newest few only, and briefly. */
async function closedRuns(services: Services, rows: readonly SessionRow[]) {
  const open = rows.filter((row) => !hasEnded(row)).slice(0, 20);
  if (open.length === 0) return new Map();
  const asked = Promise.all(
    open.map(async ({ id }) => [id, await describeRun(services.temporal, id)] as const),
  );
  return new Map(await withTimeout(asked, 3_000).catch(() => []));
}
