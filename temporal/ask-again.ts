/** Runs that wait for answers to questions that Postgres does not have: it was restored from an older copy. */
import type { Client } from "@temporalio/client";
import type { Queryable } from "../activities/store/db.ts";
import { openQuestions } from "../activities/store/questions.ts";
import { askAgainSignal, statusQuery } from "../workflows/messages.ts";
import { askWithin } from "./with-timeout.ts";

const QUERY_MS = 5_000;

/** `silent`: the run did not say what it waits for, so nothing was done and nothing is known. */
export type AskedAgain = "asked" | "nothing-gone" | "silent";

/** Makes a run store again the questions that it waits for and Postgres lacks. */
export async function askAgainIfGone(
  { db, client }: { readonly db: Queryable; readonly client: Client },
  sessionId: string,
): Promise<AskedAgain> {
  const handle = client.workflow.getHandle(sessionId);
  const view = await askWithin(client, QUERY_MS, () => handle.query(statusQuery)).catch(() => undefined);
  if (view === undefined) return "silent";
  if (view.questions.length === 0) return "nothing-gone";
  const stored = new Set((await openQuestions(db, sessionId)).map(({ id }) => id));
  if (view.questions.every(({ id }) => stored.has(id))) return "nothing-gone";
  await handle.signal(askAgainSignal);
  return "asked";
}
