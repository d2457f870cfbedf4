/** Postgres roles of clients: granted and revoked by an operator, checked by every client that connects. */
import pg from "pg";
import { applyClientRights, insist, sqlIdentifier } from "./client-rights.ts";
import type { Store } from "./db.ts";
import { changingSchema } from "./migrate.ts";

/** Postgres cuts longer names. */
const MAX_ROLE_BYTES = 63;
/** Each program of a person uses up to four; an open page uses one more. */
const MAX_CONNECTIONS = 50;

/** One role per person and set of tables, because roles belong to the whole server. */
export async function clientRole({ pool }: Pick<Store, "pool">, owner: string): Promise<string> {
  const { rows } = await pool.query<{ place: string }>(
    "select concat_ws('_', current_database(), nullif(current_schema(), 'public')) as place",
  );
  return `${rows[0]?.place ?? ""}_client_${owner}`;
}

/** Whether Postgres keeps the name of a person's role unchanged. */
export const fitsRole = (role: string) => Buffer.byteLength(role) <= MAX_ROLE_BYTES;

/**
 * Creates the role with the rights of a client, or gives an existing one a new password.
 * @throws pg.DatabaseError if the connection's own role may not create roles (42501), or no worker has created the tables (42P01)
 */
export async function grantClient(store: Store, owner: string, password: string): Promise<string> {
  const role = await clientRole(store, owner);
  return changingSchema(store, async (client) => {
    await client.query("select from client_roles limit 0");
    const { rowCount } = await client.query("select from pg_roles where rolname = $1", [role]);
    await client.query(
      `${rowCount === 0 ? "create" : "alter"} role ${sqlIdentifier(role)} login nosuperuser nocreatedb nocreaterole noreplication nobypassrls
        noinherit connection limit ${MAX_CONNECTIONS} password ${client.escapeLiteral(password)}`,
    );
    await client.query(
      "insert into client_roles (role, owner) values ($1, $2) on conflict (role) do update set owner = excluded.owner",
      [role, owner],
    );
    await applyClientRights(client);
    return role;
  });
}

/** Ends its connections and removes it. The sessions stay. @returns false if there is none */
export async function revokeClient(store: Store, owner: string): Promise<boolean> {
  const role = await clientRole(store, owner);
  return changingSchema(store, async (client) => {
    const { rowCount } = await client.query("delete from client_roles where role = $1", [role]);
    const known = await client.query("select from pg_roles where rolname = $1", [role]);
    if (known.rowCount !== 0) {
      await client.query(`alter role ${sqlIdentifier(role)} nologin`);
      await client.query("select pg_terminate_backend(pid) from pg_stat_activity where usename = $1", [role]);
      await insist(client, `drop owned by ${sqlIdentifier(role)}; drop role ${sqlIdentifier(role)}`);
    }
    return rowCount !== 0 || known.rowCount !== 0;
  });
}

/** Whose sessions the connection's role sees; undefined if it sees all. Also shows whether Postgres answers. */
export async function ownerOfRole({ pool }: Pick<Store, "pool">): Promise<string | undefined> {
  try {
    const { rows } = await pool.query<{ owner: string }>(
      "select owner from client_roles where role = current_user",
    );
    return rows[0]?.owner;
  } catch (error) {
    // No tables yet, tables of an earlier version, or a role that an operator created by hand.
    if (error instanceof pg.DatabaseError && (error.code === "42P01" || error.code === "42501"))
      return undefined;
    throw error;
  }
}
