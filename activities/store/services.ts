/** What a session's events say of its services. */
import { and, asc, eq, inArray } from "drizzle-orm";
import type { Queryable } from "./db.ts";
import type { EventData } from "./event.ts";
import { events } from "./schema/index.ts";

const TYPES = ["service:started", "service:healthy", "service:failed", "service:lost"] as const;

export interface KnownService {
  readonly name: string;
  readonly container: string;
  /** The newest event about this container. */
  readonly last: "started" | "healthy" | "failed" | "lost";
}

/** The containers of services that a session had or has, oldest first. */
export async function knownServices(db: Queryable, sessionId: string): Promise<readonly KnownService[]> {
  const rows = await db
    .select({ type: events.type, data: events.data })
    .from(events)
    .where(and(eq(events.sessionId, sessionId), inArray(events.type, [...TYPES])))
    .orderBy(asc(events.seq));
  const known = new Map<string, KnownService>();
  for (const { type, data } of rows) {
    // These rows were written by this program.
    const { name, container } = data as EventData["service:failed"];
    if (container === undefined) continue;
    known.delete(container);
    known.set(container, { name, container, last: type.slice("service:".length) as KnownService["last"] });
  }
  return [...known.values()];
}
