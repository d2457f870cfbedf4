/** Encrypted credentials for MCP servers. Only activities/mcp/ knows their content. */
import { and, eq, sql } from "drizzle-orm";
import type { Queryable, Store } from "./db.ts";
import { mcpCredentials } from "./schema/index.ts";

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
