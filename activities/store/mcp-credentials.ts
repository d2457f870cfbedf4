/** Sealed access to MCP servers. What is inside is known to activities/mcp/ alone. */
import { and, eq, sql } from "drizzle-orm";
import type { Queryable, Store } from "./db.ts";
import { mcpCredentials } from "./schema/index.ts";

/** Whose access to which server: `principal` is a hash. */
export interface CredentialId {
  readonly server: string;
  readonly principal: string;
}

/** Before it expires, so that a request does not arrive with a token that just did. */
const EARLY_SECONDS = 60;

const at = ({ server, principal }: CredentialId) =>
  and(eq(mcpCredentials.server, server), eq(mcpCredentials.principal, principal));

export async function readCredential(db: Queryable, id: CredentialId) {
  const [row] = await db
    .select({
      sealed: mcpCredentials.sealed,
      keyId: mcpCredentials.keyId,
      // By the database's clock, which set it.
      isStale: sql<boolean>`coalesce(${mcpCredentials.expiresAt} < now() + ${EARLY_SECONDS} * interval '1 s', false)`,
    })
    .from(mcpCredentials)
    .where(at(id));
  // A person who logged out leaves a row without anything in it.
  return row === undefined || row.sealed.length === 0 ? undefined : row;
}

/** @param expiresInSeconds from now; undefined: not known. Nothing sealed: the access is taken away */
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

/** Runs while no other does with this access, over all workers: two refreshes at once would end it. */
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
