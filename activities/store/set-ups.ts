/** What a session's events say of the set-up of its sandboxes. */
import { and, desc, eq, inArray } from "drizzle-orm";
import type { Queryable } from "./db.ts";
import type { EventData } from "./event.ts";
import { events } from "./schema/index.ts";

export interface KnownSetUp {
  readonly started: boolean;
  readonly ended: EventData["setup:ended"] | undefined;
  /** Another container of the session was set up before. */
  readonly again: boolean;
}

/** @param container which sandbox it is about */
export async function findSetUp(db: Queryable, sessionId: string, container: string): Promise<KnownSetUp> {
  const rows = await db
    .select({ type: events.type, data: events.data })
    .from(events)
    .where(and(eq(events.sessionId, sessionId), inArray(events.type, ["setup:started", "setup:ended"])))
    .orderBy(desc(events.seq));
  // What we wrote ourselves.
  const all = rows as { readonly type: string; readonly data: { readonly container: string } }[];
  const own = all.filter(({ data }) => data.container === container);
  const ended = own.find(({ type }) => type === "setup:ended");
  return {
    started: own.length > 0,
    ended: ended?.data as EventData["setup:ended"] | undefined,
    again: all.length > own.length,
  };
}
