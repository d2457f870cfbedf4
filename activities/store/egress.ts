/** Host names that a session's sandbox may reach beyond its configuration. */
import { rowsGone } from "../contract/failures.ts";
import { and, eq } from "drizzle-orm";
import { isLive } from "./live-line.ts";
import type { Queryable, Store } from "./db.ts";
import { appendEvents } from "./events.ts";
import type { EventData } from "./event.ts";
import { egressRules, events, questions } from "./schema/index.ts";
import { lockSession } from "./session-locks.ts";
import { excluded } from "./statements.ts";
import { lastStep } from "./sessions.ts";

/** Patterns that were allowed on the live line. */
export async function allowedDomains(db: Queryable, sessionId: string): Promise<string[]> {
  const rows = await db
    .select({ domain: egressRules.domain })
    .from(egressRules)
    .where(isLive(egressRules, sessionId))
    .orderBy(egressRules.id);
  return rows.map(({ domain }) => domain);
}

/** The most names in one question. */
const MAX_ASKED = 20;

/**
 * The names that a step's commands were refused, that a person could allow, and that no earlier step's question asked about.
 * The result stays the same for as long as the step is the newest.
 */
export async function namesToAsk(
  db: Queryable,
  { sessionId, epoch, step }: { readonly sessionId: string; readonly epoch: number; readonly step: number },
): Promise<string[]> {
  const rows = await db
    .select({ step: events.step, data: events.data })
    .from(events)
    .where(and(eq(events.sessionId, sessionId), eq(events.epoch, epoch), eq(events.type, "egress:denied")))
    .orderBy(events.seq);
  const stored = await db
    .select({ step: questions.step })
    .from(questions)
    .where(and(eq(questions.sessionId, sessionId), eq(questions.epoch, epoch), eq(questions.kind, "egress")));
  const before = new Set(stored.filter((question) => question.step < step).map((question) => question.step));
  const hostsOf = (of: (at: number) => boolean) =>
    rows
      .filter((row) => of(row.step))
      // These rows were written by this program.
      .map((row) => row.data as EventData["egress:denied"])
      .flatMap(({ host, allow }) => (allow === undefined ? [] : [host]));
  const earlierHosts = new Set(hostsOf((at) => before.has(at)));
  return [...new Set(hostsOf((at) => at === step))]
    .filter((host) => !earlierHosts.has(host))
    .slice(0, MAX_ASKED);
}

/** Allows a name from now on, and notifies watchers. A reset to before this step withdraws it. */
export async function allowDomain(store: Pick<Store, "db">, rule: DomainRule): Promise<void> {
  await store.db.transaction((tx) => addRule(tx, rule));
}

interface DomainRule {
  readonly sessionId: string;
  readonly domain: string;
  readonly by: string;
}

/** As `allowDomain`, in a transaction. */
export async function addRule(tx: Queryable, { sessionId, domain, by }: DomainRule): Promise<void> {
  const session = await lockSession(tx, sessionId);
  if (session === undefined) throw rowsGone("the rule was not stored");
  const { epoch } = session;
  const step = await lastStep(tx, sessionId);
  await tx
    .insert(egressRules)
    .values({ sessionId, epoch, step, domain, by })
    .onConflictDoUpdate({
      target: [egressRules.sessionId, egressRules.epoch, egressRules.domain],
      set: { step: excluded(egressRules.step), by: excluded(egressRules.by), supersededEpoch: null },
    });
  await appendEvents(tx, sessionId, epoch, [{ type: "egress:allowed", step, data: { domain, by } }]);
}
