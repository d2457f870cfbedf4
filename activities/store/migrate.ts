/**
 * Brings the tables up to date, in the schema that is the connection's own: the first of its `search_path`, by default `public`. So
 * an address (`?options=-c search_path=…`) or a role chooses the schema, as for any program.
 */
import { fileURLToPath } from "node:url";
import { readMigrationFiles } from "drizzle-orm/migrator";
import pg from "pg";
import { applyClientRights, sqlIdentifier } from "./client-rights.ts";
import { allowSilence } from "./connections.ts";

/** Any number; the same in every version, so that old and new workers exclude each other. */
const SCHEMA_LOCK = 7_305_142;

/** No tables can be made in the schema. The message says why; the connection's role, and what helps. */
export class SchemaUnusable extends Error {
  override readonly name = "SchemaUnusable";
  readonly fix: string;

  constructor(message: string, fix: string) {
    super(message);
    this.fix = fix;
  }
}

/** The schema has tables of a build before the first release, whose rows this one does not read. Nothing in them is changed. */
export class EarlierTables extends Error {
  override readonly name = "EarlierTables";
}

/**
 * Runs the body on a connection of its own while no other process changes tables, rights or roles of the same database:
 * Postgres refuses two at once ("tuple concurrently updated").
 * @throws what the body throws; the connection is closed then, which frees the lock and undoes what was not committed
 */
export async function changingSchema<T>(
  { pool }: { readonly pool: pg.Pool },
  body: (client: pg.PoolClient) => Promise<T>,
): Promise<T> {
  const client = await pool.connect();
  let isDone = false;
  try {
    // What another process changes may take long, and this one waits for it.
    allowSilence(client);
    await client.query("select pg_advisory_lock($1)", [SCHEMA_LOCK]);
    const result = await body(client);
    await client.query("select pg_advisory_unlock($1)", [SCHEMA_LOCK]);
    isDone = true;
    return result;
  } finally {
    client.release(!isDone);
  }
}

/**
 * Several processes may call it at once: they go one after the other. Also grants clients' roles their rights on new tables.
 * Idempotent.
 * @throws SchemaUnusable, EarlierTables
 */
export const migrateStore = (store: { readonly pool: pg.Pool }): Promise<void> =>
  changingSchema(store, async (client) => {
    await applyMigrations(client);
    await applyClientRights(client);
  });

/**
 * As drizzle's own migrator does it, in the table that this uses, but without its CREATE SCHEMA: that needs a right on the database also
 * where the schema exists, which a managed server gives to nobody.
 */
async function applyMigrations(client: pg.PoolClient): Promise<void> {
  const { target, table, missing } = await missingMigrations(client);
  if (missing.length === 0) return;
  await client.query("begin");
  try {
    if (!target.isKnown)
      await client.query(
        `create table ${table} (id serial primary key, hash text not null, created_at bigint)`,
      );
    for (const { folderMillis, hash, sql } of missing) {
      for (const statement of sql) await client.query(inSchema(statement, target.schema));
      await client.query(`insert into ${table} (hash, created_at) values ($1, $2)`, [hash, folderMillis]);
    }
    await client.query("commit");
  } catch (error) {
    await client.query("rollback").catch(() => undefined);
    throw error;
  }
}

/**
 * What `migrateStore` would do, without doing it.
 * @returns the schema, and how many migrations it lacks
 * @throws SchemaUnusable, EarlierTables
 */
export async function lookAtTables(client: pg.ClientBase): Promise<{ schema: string; lacking: number }> {
  const { target, missing } = await missingMigrations(client);
  return { schema: target.schema, lacking: missing.length };
}

/** @throws SchemaUnusable, also if there are some and the role may not make them; EarlierTables */
async function missingMigrations(client: pg.ClientBase) {
  const target = await findTarget(client);
  const table = `${sqlIdentifier(target.schema)}.longhaul_migrations`;
  const all = readMigrations();
  const applied = target.isKnown ? await appliedMigrations(client, table) : [];
  if (areEarlier(applied, all)) throw new EarlierTables(`the schema ${target.schema} has them`);
  const last = Math.max(-1, ...applied.map(({ at }) => Number(at)));
  const missing = all.filter((one) => one.folderMillis > last);
  if (missing.length > 0 && !target.mayCreate) throw mayNotCreate(target);
  return { target, table, missing };
}

const readMigrations = () =>
  readMigrationFiles({ migrationsFolder: fileURLToPath(new URL("./migrations", import.meta.url)) });

interface Applied {
  readonly hash: string;
  /** ms since 1970, as text. */
  readonly at: string;
}

const appliedMigrations = async (client: Pick<pg.Pool, "query">, table: string): Promise<Applied[]> =>
  (await client.query<Applied>(`select hash, created_at as at from ${table}`)).rows;

/** Every database of ours begins with our first migration, which nobody edits. */
const areEarlier = (applied: readonly Applied[], [first]: readonly { readonly hash: string }[]): boolean =>
  applied.length > 0 && !applied.some(({ hash }) => hash === first?.hash);

/**
 * For a client, which does not migrate: a database without tables, and any other that a worker has made, passes.
 * @throws EarlierTables
 */
export async function refuseEarlierTables(client: Pick<pg.Pool, "query">): Promise<void> {
  const applied = await appliedMigrations(client, "longhaul_migrations").catch((error: unknown) => {
    // No tables yet, or a role that an operator created by hand: the first query says so.
    if (error instanceof pg.DatabaseError && (error.code === "42P01" || error.code === "42501")) return [];
    throw error;
  });
  if (areEarlier(applied, readMigrations())) throw new EarlierTables("the database has them");
}

/** Migrations are written for `public`, as the library generates them. Whatever they name by its schema is in the chosen one. */
export const inSchema = (statement: string, schema: string): string =>
  statement
    .replaceAll('"public".', () => `${sqlIdentifier(schema)}.`)
    .replaceAll("search_path = public,", () => `search_path = ${sqlIdentifier(schema)},`);

interface Target {
  readonly schema: string;
  readonly role: string;
  readonly mayCreate: boolean;
  /** It has our tables. */
  readonly isKnown: boolean;
}

const PLACE = `select current_schema() as schema, current_user as role, current_setting('search_path') as path,
  has_schema_privilege(current_schema(), 'CREATE') as "mayCreate",
  exists (select from pg_class where relname = 'longhaul_migrations' and relnamespace = to_regnamespace(quote_ident(current_schema()))) as "isKnown",
  (select relnamespace::regnamespace::text from pg_class where oid = to_regclass('longhaul_migrations')) as other`;

/** @throws SchemaUnusable */
async function findTarget(client: pg.ClientBase): Promise<Target> {
  const { rows } = await client.query<
    { [K in keyof Target]: Target[K] | null } & { path: string; role: string; other: string | null }
  >(PLACE);
  const { schema, role, path, mayCreate, isKnown, other } = rows[0] ?? expectRow();
  if (schema === null)
    throw new SchemaUnusable(
      `no schema of the search_path (${path}) exists and may be used by the role ${role}`,
      `As the owner of the database: CREATE SCHEMA NAME AUTHORIZATION ${sqlIdentifier(role)}; or as the owner of an existing schema: GRANT USAGE, CREATE ON SCHEMA NAME TO ${sqlIdentifier(role)}; and name it in the search_path of the role or the address.`,
    );
  // Nobody asked for another set of tables: the schema came up later, under the role's name.
  if (isKnown !== true && other !== null && schema === role && path.includes('"$user"'))
    throw new SchemaUnusable(
      `the tables are in the schema ${other}, but new ones would go to ${schema}, because the search_path is ${path}`,
      `Choose one: ALTER ROLE ${sqlIdentifier(role)} SET search_path = ${other}; or = ${sqlIdentifier(schema)}, for tables of its own.`,
    );
  return { schema, role, mayCreate: mayCreate === true, isKnown: isKnown === true };
}

function expectRow(): never {
  throw new Error("Postgres answered a query of one row with none");
}

const mayNotCreate = ({ schema, role }: Target): SchemaUnusable => {
  const name = /^[a-z_][a-z0-9_]*$/.test(schema) ? schema : sqlIdentifier(schema);
  return new SchemaUnusable(
    `the role ${role} may not create tables in the schema ${schema}`,
    `As the owner of the schema: GRANT USAGE, CREATE ON SCHEMA ${name} TO ${sqlIdentifier(role)};`,
  );
};
