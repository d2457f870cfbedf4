/** Postgres roles of clients: granted and revoked by an operator, checked by every client that connects. */
import { eq, sql } from "drizzle-orm";
import pg from "pg";
import { applyClientRights, insist, sqlIdentifier } from "./client-rights.ts";
import type { Store } from "./db.ts";
import { clientRoles } from "./schema/index.ts";
import { forDriver } from "./plain-statements.ts";
import { assigned, bare, excluded, insertFrom } from "./statements.ts";
import { changingSchema } from "./migrate.ts";

/** Postgres cuts longer names. */
const MAX_ROLE_BYTES = 63;
/** Each program of a person uses up to four; an open page uses one more. */
const MAX_CONNECTIONS = 50;

/** One role per person and set of tables, because roles belong to the whole server. */
export async function clientRole({ pool }: Pick<Store, "pool">, owner: string): Promise<string> {
  const { rows } = await pool.query<{ place: string }>(
    forDriver(sql`select concat_ws('_', current_database(), nullif(current_schema(), 'public')) as place`),
  );
  return `${rows[0]?.place ?? ""}_client_${owner}`;
}

/** Whether Postgres keeps the name of a person's role unchanged. */
export const fitsRole = (role: string) => Buffer.byteLength(role) <= MAX_ROLE_BYTES;

const roleQuery = (role: string) => forDriver(sql`select from pg_roles where rolname = ${role}`);

/**
 * Creates the role with the rights of a client, or gives an existing one a new password.
 * @throws pg.DatabaseError if the connection's own role may not create roles (42501), or no worker has created the tables (42P01)
 */
export async function grantClient(store: Store, owner: string, password: string): Promise<string> {
  const role = await clientRole(store, owner);
  return changingSchema(store, async (client) => {
    await client.query(forDriver(sql`select from ${clientRoles} limit 0`));
    const { rowCount } = await client.query(roleQuery(role));
    await client.query(
      `${rowCount === 0 ? "create" : "alter"} role ${sqlIdentifier(role)} login nosuperuser nocreatedb nocreaterole noreplication nobypassrls
        noinherit connection limit ${MAX_CONNECTIONS} password ${client.escapeLiteral(password)}`,
    );
    const updated = assigned([clientRoles.owner, excluded(clientRoles.owner)]);
    const rest = sql`on conflict (${bare(clientRoles.role)}) do update set ${updated}`;
    await client.query(forDriver(insertFrom(clientRoles, { role, owner }, rest)));
    await applyClientRights(client);
    return role;
  });
}

/** Ends its connections and removes it. The sessions stay. @returns false if there is none */
export async function revokeClient(store: Store, owner: string): Promise<boolean> {
  const role = await clientRole(store, owner);
  return changingSchema(store, async (client) => {
    const { rowCount } = await client.query(
      forDriver(sql`delete from ${clientRoles} where ${eq(clientRoles.role, role)}`),
    );
    const before = await client.query(roleQuery(role));
    if (before.rowCount !== 0) {
      await client.query(forDriver(sql`alter role ${sql.identifier(role)} nologin`));
      await client.query(
        forDriver(sql`select pg_terminate_backend(pid) from pg_stat_activity where usename = ${role}`),
      );
      await insist(client, `drop owned by ${sqlIdentifier(role)}; drop role ${sqlIdentifier(role)}`);
    }
    return rowCount !== 0 || before.rowCount !== 0;
  });
}

/** Whose sessions the connection's role sees; undefined if it sees all. Also shows whether Postgres answers. */
export async function ownerOfRole({ pool }: Pick<Store, "pool">): Promise<string | undefined> {
  try {
    const { rows } = await pool.query<{ owner: string }>(
      forDriver(
        sql`select ${clientRoles.owner} from ${clientRoles} where ${clientRoles.role} = current_user`,
      ),
    );
    return rows[0]?.owner;
  } catch (error) {
    // No tables yet, or a role that an operator created by hand.
    if (error instanceof pg.DatabaseError && (error.code === "42P01" || error.code === "42501"))
      return undefined;
    throw error;
  }
}
