/** The database and its owner role: the worker connects as a role with all rights inside the database and none outside. */
import pg from "pg";
import { readPostgresAddress } from "../../activities/store/postgres-address.ts";

export const WORKER_ROLE = "longhaul";

/** Transfers ownership of a database that an earlier version created as the superuser. */
const TAKE_OVER = `do $$
declare found record;
begin
  for found in select nspname as name from pg_namespace
    where nspname !~ '^pg_' and nspname not in ('information_schema', 'public') and nspowner <> '${WORKER_ROLE}'::regrole
  loop execute format('alter schema %I owner to ${WORKER_ROLE}', found.name); end loop;
  for found in select oid::regclass as name from pg_class
    where relkind in ('r', 'p', 'v', 'm', 'S') and relowner <> '${WORKER_ROLE}'::regrole
      and relnamespace not in (select oid from pg_namespace where nspname ~ '^pg_' or nspname = 'information_schema')
      and not exists (select from pg_depend where objid = pg_class.oid and deptype in ('a', 'i', 'e') and relkind = 'S')
  loop execute format('alter table %s owner to ${WORKER_ROLE}', found.name); end loop;
  for found in select oid::regprocedure as name from pg_proc
    where proowner <> '${WORKER_ROLE}'::regrole
      and pronamespace not in (select oid from pg_namespace where nspname ~ '^pg_' or nspname = 'information_schema')
  loop execute format('alter routine %s owner to ${WORKER_ROLE}', found.name); end loop;
  for found in select oid::regtype as name from pg_type
    where typtype in ('e', 'd') and typowner <> '${WORKER_ROLE}'::regrole
      and typnamespace not in (select oid from pg_namespace where nspname ~ '^pg_' or nspname = 'information_schema')
  loop execute format('alter type %s owner to ${WORKER_ROLE}', found.name); end loop;
end $$`;

/**
 * Creates both if they are missing, and transfers an existing database. Idempotent.
 * @param maintenanceUrl of a database that always exists, as a superuser
 * @param password of the worker's role
 */
export async function ensureRoleAndDatabase(
  maintenanceUrl: string,
  database: string,
  password: string,
): Promise<void> {
  const owner = await onDatabase({ url: maintenanceUrl }, async (client) => {
    const { rowCount } = await client.query("select from pg_roles where rolname = $1", [WORKER_ROLE]);
    const verb = rowCount === 0 ? "create" : "alter";
    await client.query(
      `${verb} role ${WORKER_ROLE} login nosuperuser nocreatedb nocreaterole noreplication nobypassrls` +
        ` password ${client.escapeLiteral(password)}`,
    );
    const found = await client.query<{ owner: string }>(
      "select pg_get_userbyid(datdba) as owner from pg_database where datname = $1",
      [database],
    );
    if (found.rows[0] === undefined)
      await client.query(`create database ${client.escapeIdentifier(database)} owner ${WORKER_ROLE}`);
    return found.rows[0]?.owner ?? WORKER_ROLE;
  });
  if (owner === WORKER_ROLE) return;
  await onDatabase({ url: maintenanceUrl, database }, async (client) => {
    // Running sessions hold locks on their tables only briefly.
    await client.query("set lock_timeout = '15s'");
    await client.query("begin");
    await client.query(TAKE_OVER);
    // Last, so that an interrupted attempt is repeated.
    await client.query(`alter database ${client.escapeIdentifier(database)} owner to ${WORKER_ROLE}`);
    await client.query("commit");
  });
}

async function onDatabase<T>(
  { url, ...other }: { readonly url: string; readonly database?: string },
  use: (client: pg.Client) => Promise<T>,
): Promise<T> {
  const client = new pg.Client({ ...readPostgresAddress(url).config, ...other });
  await client.connect();
  try {
    return await use(client);
  } finally {
    await client.end();
  }
}
