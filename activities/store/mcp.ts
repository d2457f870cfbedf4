/** The lists of MCP servers' tools that sessions use. */
import { and, asc, eq, inArray, ne, sql } from "drizzle-orm";
import type { McpCatalogue, McpToolEntry } from "../contract/tools.ts";
import type { Queryable, Store } from "./db.ts";
import type { LedgerRow } from "./tool-calls.ts";
import { mcpCatalogues, toolCalls, mcpCredentials } from "./schema/index.ts";

/** Stored in place of the protocol revision for a server that did not answer. */
const FAILED = "failed";
/** Stored there once that server is to be asked again. */
const DUE = "due";

/** Lists by digest, as every activity of a session reads them: a list of 30,000 tokens is read once. */
const toolsByDigest = new Map<string, readonly McpToolEntry[]>();
const MAX_KNOWN = 200;

/** The lists that a session uses, in the order of the servers' names. */
export async function loadCatalogues(db: Queryable, sessionId: string): Promise<McpCatalogue[]> {
  const rows = await db
    .select({
      server: mcpCatalogues.server,
      era: mcpCatalogues.era,
      digest: mcpCatalogues.digest,
      found: mcpCatalogues.found,
      next: sql<NonNullable<McpCatalogue["next"]> | null>`${mcpCatalogues.next}::jsonb - 'tools' - 'era'`,
    })
    .from(mcpCatalogues)
    .where(and(eq(mcpCatalogues.sessionId, sessionId), ne(mcpCatalogues.era, DUE)))
    .orderBy(asc(mcpCatalogues.server));
  const unread = rows.filter(({ digest }) => !toolsByDigest.has(digest)).map(({ server }) => server);
  if (unread.length > 0) await read(db, sessionId, unread);
  return rows.map(({ server, era, digest, found, next }) => {
    const shared = {
      server,
      digest,
      found: (found as string[] | null) ?? [],
      next: next ?? undefined,
    };
    // For a failed server the digest column holds the reason.
    if (era === FAILED) return { ...shared, era: "", tools: [], failed: digest };
    return { ...shared, era, tools: toolsByDigest.get(digest) ?? [] };
  });
}

async function read(db: Queryable, sessionId: string, servers: readonly string[]): Promise<void> {
  const rows = await db
    .select({ digest: mcpCatalogues.digest, tools: mcpCatalogues.tools })
    .from(mcpCatalogues)
    .where(and(eq(mcpCatalogues.sessionId, sessionId), inArray(mcpCatalogues.server, [...servers])));
  for (const { digest, tools } of rows) toolsByDigest.set(digest, tools as McpToolEntry[]);
  for (const oldest of toolsByDigest.keys()) {
    if (toolsByDigest.size <= MAX_KNOWN) break;
    toolsByDigest.delete(oldest);
  }
}

/** Stores what a server listed, or why it did not. The first of two attempts counts. @returns whether this was the first */
export async function keepCatalogue(
  db: Queryable,
  session: { readonly id: string; readonly epoch: number },
  catalogue: Omit<McpCatalogue, "found">,
): Promise<boolean> {
  const { server, tools, failed } = catalogue;
  const listed =
    failed === undefined
      ? { era: catalogue.era, tools, digest: catalogue.digest }
      : { era: FAILED, tools: [], digest: failed };
  const rows = await db
    .insert(mcpCatalogues)
    .values({ sessionId: session.id, server, epoch: session.epoch, ...listed })
    .onConflictDoUpdate({
      target: [mcpCatalogues.sessionId, mcpCatalogues.server],
      set: listed,
      setWhere: eq(mcpCatalogues.era, DUE),
    })
    .returning({ server: mcpCatalogues.server });
  return rows.length > 0;
}

/**
 * Stores a server's new list next to the one that the session uses; null if the two are equal again.
 * @returns false if it is already stored, or the session has switched to another list meanwhile
 */
export async function keepNext(
  db: Queryable,
  sessionId: string,
  current: Pick<McpCatalogue, "server" | "digest">,
  next:
    | (NonNullable<McpCatalogue["next"]> & { readonly era: string; readonly tools: readonly McpToolEntry[] })
    | null,
): Promise<boolean> {
  const storedDigest = sql`${mcpCatalogues.next}->>'digest'`;
  const rows = await db
    .update(mcpCatalogues)
    .set({ next })
    .where(
      and(
        eq(mcpCatalogues.sessionId, sessionId),
        eq(mcpCatalogues.server, current.server),
        eq(mcpCatalogues.digest, current.digest),
        sql`${storedDigest} is distinct from ${next?.digest ?? null}`,
      ),
    )
    .returning({ server: mcpCatalogues.server });
  return rows.length > 0;
}

/** Replaces the lists that the session uses by the servers' new ones. */
export async function takeNext(db: Queryable, sessionId: string, servers: readonly string[]): Promise<void> {
  const { next } = mcpCatalogues;
  await db
    .update(mcpCatalogues)
    .set({
      era: sql`${next}->>'era'`,
      tools: sql`${next}->'tools'`,
      digest: sql`${next}->>'digest'`,
      next: null,
    })
    .where(
      and(
        eq(mcpCatalogues.sessionId, sessionId),
        inArray(mcpCatalogues.server, [...servers]),
        sql`${next}->>'digest' is not null`,
      ),
    );
}

/** At the start of a new run, marks servers that did not answer to be asked again. */
export async function retryFailed(db: Queryable, sessionId: string): Promise<void> {
  await db
    .update(mcpCatalogues)
    .set({ era: DUE })
    .where(and(eq(mcpCatalogues.sessionId, sessionId), eq(mcpCatalogues.era, FAILED)));
}

/** Adds full names that a search found, each once. */
export async function keepFound(
  db: Queryable,
  sessionId: string,
  server: string,
  names: readonly string[],
): Promise<void> {
  const namesJson = JSON.stringify(names);
  const before = sql`coalesce(${mcpCatalogues.found}::jsonb, '[]'::jsonb)`;
  await db
    .update(mcpCatalogues)
    .set({
      found: sql`(${before} || coalesce((select jsonb_agg(name) from jsonb_array_elements(${namesJson}::jsonb) as name
        where not ${before} @> name), '[]'::jsonb))::json`,
    })
    .where(and(eq(mcpCatalogues.sessionId, sessionId), eq(mcpCatalogues.server, server)));
}

/**
 * Records a call's state before it is sent: a later attempt then knows whether the call may have been executed.
 * @param fence of the attempt that has the call
 * @returns false if another attempt has it, or it has ended
 */
export async function noteMcpState(
  db: Queryable,
  call: LedgerRow,
  fence: number,
  update: { readonly state: string; readonly task: string | undefined },
): Promise<boolean> {
  const rows = await db
    .update(toolCalls)
    .set({ mcpState: update.state, mcpTask: update.task })
    .where(
      and(
        eq(toolCalls.sessionId, call.sessionId),
        eq(toolCalls.epoch, call.epoch),
        eq(toolCalls.step, call.step),
        eq(toolCalls.index, call.index),
        eq(toolCalls.fence, fence),
        inArray(toolCalls.status, ["pending", "running"]),
      ),
    )
    .returning({ index: toolCalls.index });
  return rows.length > 0;
}

/** Whose credential for which server: `principal` is a hash. */
export interface CredentialId {
  readonly server: string;
  readonly principal: string;
}

/** A token counts as stale this long before it expires, so that it does not expire while a request is in transit. */
const EARLY_SECONDS = 60;

const at = ({ server, principal }: CredentialId) =>
  and(eq(mcpCredentials.server, server), eq(mcpCredentials.principal, principal));

export async function readCredential(db: Queryable, id: CredentialId) {
  const [row] = await db
    .select({
      sealed: mcpCredentials.sealed,
      keyId: mcpCredentials.keyId,
      // Compared by the database's clock, which also set the expiry.
      isStale: sql<boolean>`coalesce(${mcpCredentials.expiresAt} < now() + ${EARLY_SECONDS} * interval '1 s', false)`,
    })
    .from(mcpCredentials)
    .where(at(id));
  // Logging out leaves a row with an empty value.
  return row === undefined || row.sealed.length === 0 ? undefined : row;
}

/** @param expiresInSeconds from now; undefined if not known. An empty sealed value removes the access */
export async function writeCredential(
  db: Queryable,
  id: CredentialId,
  {
    sealed,
    keyId,
    expiresInSeconds,
  }: { sealed: Uint8Array; keyId: string; expiresInSeconds: number | undefined },
): Promise<void> {
  const expiresAt = expiresInSeconds === undefined ? null : sql`now() + ${expiresInSeconds} * interval '1 s'`;
  await db
    .insert(mcpCredentials)
    .values({ ...id, sealed, keyId, expiresAt })
    .onConflictDoUpdate({
      target: [mcpCredentials.server, mcpCredentials.principal],
      set: { sealed, keyId, expiresAt, version: sql`${mcpCredentials.version} + 1` },
    });
}

/** Runs exclusively for this credential over all workers: two refreshes at once would invalidate it. */
export function lockedCredential<T>(
  { db }: Pick<Store, "db">,
  { server, principal }: CredentialId,
  body: (tx: Queryable) => Promise<T>,
): Promise<T> {
  return db.transaction(async (tx) => {
    await tx.execute(
      sql`select pg_advisory_xact_lock(hashtext('mcp'), hashtext(${`${server} ${principal}`}))`,
    );
    return body(tx);
  });
}
