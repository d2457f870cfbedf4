/** Finds the session that a person means: by its id, a prefix of its id, or the newest one. */
import { cleanText } from "../../activities/text/clean.ts";
import { nearest } from "../../activities/text/lists.ts";
import { findDeleted } from "../../activities/store/delete-session.ts";
import {
  findSessionRow,
  idsWithPrefix,
  listSessions,
  type SessionRow,
} from "../../activities/store/reading.ts";
import type { Store } from "../../activities/store/db.ts";
import { noSuchSession, notPossible, type ClientError } from "../console/errors.ts";
import { listNames, stamp } from "../console/format.ts";

/** The session that was started last, in any state. */
const LAST = "@last";

const START_ONE = 'Start one: longhaul run "…"';

/** How many of the newest ids are searched for a mistyped one. */
const NEAR_AMONG = 1_000;
/** How many are listed; a single further one too. */
const NAMED = 5;

/**
 * An exact match wins over ids that only begin with the reference.
 * @throws ClientError (impossible) if none or several match
 */
export async function findByReference(db: Store["db"], input: string): Promise<SessionRow> {
  // Postgres refuses NUL, and no id contains it.
  const reference = cleanText(input);
  if (reference === LAST) return newest(db);
  const exact = await findSessionRow(db, reference);
  if (exact !== undefined) return exact;
  const matches = reference === "" ? [] : await idsWithPrefix(db, reference, NAMED + 2);
  const [only, other] = matches;
  if (only === undefined)
    throw (await deleted(db, reference)) ?? notFound(reference, await idsWithPrefix(db, "", NEAR_AMONG));
  if (other !== undefined) throw ambiguous(reference, matches);
  const row = await findSessionRow(db, only);
  if (row === undefined) throw noSuchSession(reference);
  return row;
}

async function newest(db: Store["db"]): Promise<SessionRow> {
  const [row] = await listSessions(db, { limit: 1 });
  if (row === undefined) throw notFound(LAST, []);
  return row;
}

async function deleted(db: Store["db"], id: string): Promise<ClientError | undefined> {
  const deletion = await findDeleted(db, id);
  if (deletion === undefined) return undefined;
  const by = deletion.deletedBy === null ? "" : ` by ${deletion.deletedBy}`;
  return noSuchSession(id, `It was deleted${by}: ${stamp(deletion.deletedAt)}.`);
}

function ambiguous(reference: string, matches: readonly string[]): ClientError {
  // How many more there are is not known.
  const names =
    matches.length > NAMED + 1 ? `${matches.slice(0, NAMED).join(", ")} and others` : listNames(matches);
  return notPossible(`Several sessions begin with ${reference}: ${names}.`, "Type more of the id.");
}

/** @param ids those that there are, the newest of many */
export function notFound(reference: string, ids: readonly string[]): ClientError {
  if (ids.length === 0 && reference === LAST) return notPossible("There are no sessions yet.", START_ONE);
  if (ids.length === 0) return noSuchSession(reference, `There are none yet. ${START_ONE}`);
  const suggestion = nearest(reference, ids);
  return suggestion === undefined
    ? noSuchSession(reference)
    : noSuchSession(reference, `Did you mean ${suggestion}?`);
}
