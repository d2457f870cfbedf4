/** Runs that wait for answers to questions that Postgres does not have: it was restored from an older copy. */
import type { Client } from "@temporalio/client";
import type { Queryable } from "../../activities/store/db.ts";
import { openQuestions } from "../../activities/store/questions.ts";
import { askAgainSignal, statusQuery } from "../../workflows/messages.ts";
import { askWithin } from "./with-timeout.ts";

const QUERY_MS = 5_000;

/**
 * Makes a run store again the questions that it waits for and Postgres lacks. Nothing happens if it does not answer.
 * @returns whether there were such questions
 */
export async function askAgainIfGone(
  { db, client }: { readonly db: Queryable; readonly client: Client },
  sessionId: string,
): Promise<boolean> {
  const handle = client.workflow.getHandle(sessionId);
  const view = await askWithin(client, QUERY_MS, () => handle.query(statusQuery)).catch(() => undefined);
  if (view === undefined || view.questions.length === 0) return false;
  const stored = new Set((await openQuestions(db, sessionId)).map(({ id }) => id));
  if (view.questions.every(({ id }) => stored.has(id))) return false;
  await handle.signal(askAgainSignal);
  return true;
}
