/** Names that a session's sandbox may ask for beyond its configuration. */
import { and, eq, isNull, sql } from "drizzle-orm";
import type { Queryable, Store } from "./db.ts";
import { appendEvents } from "./events.ts";
import { egressRules } from "./schema/index.ts";
import { lastStep, lockEpoch } from "./sessions.ts";

/** Patterns that were allowed on the live line. */
export async function allowedDomains(db: Queryable, sessionId: string): Promise<string[]> {
  const rows = await db
    .select({ domain: egressRules.domain })
    .from(egressRules)
    .where(and(eq(egressRules.sessionId, sessionId), isNull(egressRules.supersededEpoch)))
    .orderBy(egressRules.id);
  return rows.map(({ domain }) => domain);
}

/** Allows a name from here on, and says so to watchers. A reset to before this step takes it back. */
export async function allowDomain(
  store: Pick<Store, "db">,
  { sessionId, domain, by }: { readonly sessionId: string; readonly domain: string; readonly by: string },
): Promise<void> {
  await store.db.transaction(async (tx) => {
    const epoch = await lockEpoch(tx, sessionId);
    if (epoch === undefined) throw new Error(`No session ${sessionId}.`);
    const step = await lastStep(tx, sessionId);
    await tx
      .insert(egressRules)
      .values({ sessionId, epoch, step, domain, by })
      .onConflictDoUpdate({
        target: [egressRules.sessionId, egressRules.epoch, egressRules.domain],
        set: { step: sql`excluded.step`, by: sql`excluded.by`, supersededEpoch: null },
      });
    await appendEvents(tx, sessionId, epoch, [{ type: "egress:allowed", step, data: { domain, by } }]);
  });
}
