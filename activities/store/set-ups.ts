/** What a session's events record about the set-up of its sandboxes. */
import { and, desc, eq, inArray } from "drizzle-orm";
import type { Queryable } from "./db.ts";
import type { EventData } from "./event.ts";
import { events } from "./schema/index.ts";

export interface KnownSetUp {
  readonly started: boolean;
  readonly ended: EventData["setup:ended"] | undefined;
  /** Another container of the session was set up earlier. */
  readonly again: boolean;
  /** This container is created from an image built from the workspace's Dockerfile. */
  readonly built: boolean;
  /** The key of that image, for this container or the newest before it. */
  readonly image: string | undefined;
}

/** @param container which sandbox it is about */
export async function findSetUp(db: Queryable, sessionId: string, container: string): Promise<KnownSetUp> {
  const rows = await db
    .select({ type: events.type, data: events.data })
    .from(events)
    .where(
      and(
        eq(events.sessionId, sessionId),
        inArray(events.type, ["setup:started", "setup:built", "setup:ended"]),
      ),
    )
    .orderBy(desc(events.seq));
  // These rows were written by this program.
  const all = rows as {
    readonly type: string;
    readonly data: { readonly container: string; readonly image?: string };
  }[];
  const own = all.filter(({ data }) => data.container === container);
  const ended = own.find(({ type }) => type === "setup:ended");
  return {
    started: own.length > 0,
    ended: ended?.data as EventData["setup:ended"] | undefined,
    again: all.some(({ type, data }) => type === "setup:ended" && data.container !== container),
    built: own.some(({ type }) => type === "setup:built"),
    image: all.find(({ type }) => type === "setup:built")?.data.image,
  };
}
