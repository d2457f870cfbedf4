/**
 * What a client's role may do in the database: see and change the sessions of its owner, and nothing else. None of this restricts
 * the tables' owner, the role with which workers connect. Nothing here is in force until `client_roles` has a role.
 */
import { createHash } from "node:crypto";
import { getTableColumns, getTableName, is } from "drizzle-orm";
import { PgTable } from "drizzle-orm/pg-core";
import { idPatterns } from "../contract/session-ids.ts";
import { sessionTables } from "./session-tables.ts";
import * as schema from "./schema/index.ts";

/** Runs statements one by one. */
interface Statements {
  query<Row>(text: string, values?: readonly unknown[]): Promise<{ readonly rows: Row[] }>;
}

interface Rights {
  /**
   * As in `grant … on table`. Rights to insert and to update are per column, because one for the whole table is also the right to
   * lock it. Nothing may be deleted: a schedule is removed by a function.
   */
  readonly grants: string;
  /** Condition for rows that the role may see and change. */
  readonly rows: string;
  /** A further condition for new rows. */
  readonly newRows?: string;
}

const MINE = "(select c.owner from client_roles c where c.role = current_user)";
/** The policy of `sessions` hides the rows of other owners. Looks up the primary key. */
const ofSession = (table: string) => `exists (select 1 from sessions s where s.id = ${table}.session_id)`;
const READ = "select";
/** Replaced by all columns of the table. */
const INSERT = "insert (*)";
/** Replaced by the columns that have no number from a sequence. */
const UPDATE = "update (*)";
const WRITE = `select, ${INSERT}, ${UPDATE}`;

/** A role that waits, computes or keeps a transaction open for longer is ended by Postgres. Chosen: a large export takes a minute. */
const ROLE_LIMITS = {
  statement_timeout: "5min",
  lock_timeout: "30s",
  idle_in_transaction_session_timeout: "60s",
} as const;

/** Tables whose rights differ from those of a session's other tables, by name. */
const SPECIAL: Readonly<Record<string, Rights | "none">> = {
  sessions: {
    // Columns that a new run or a model switch changes. No client changes its sandbox's location or its owner.
    grants:
      "select, insert (*), update (status, ended_at, result, error, updated_at, epoch, run_id, restore_workspace, config, namespace)",
    rows: `owner = ${MINE}`,
    // Only workers create delegates, which they trust as far as their parents, and other sessions with derived ids.
    newRows: `container is null and parent_id is null and run_id is null
      and id ~ '${idPatterns.chosen}' and id !~* '${idPatterns.derived}'`,
  },
  // Workers use these rows to find the sandbox that they trust.
  sandboxes: { grants: "select, update (saves_begun)", rows: ofSession("sandboxes") },
  model_calls: { grants: READ, rows: ofSession("model_calls") },
  // Checkpoints that a worker reads on behalf of a session must belong to the same owner.
  checkpoints: {
    grants: "select, insert (*), update (superseded_epoch, superseded_by)",
    rows: ofSession("checkpoints"),
    newRows: "parent_id is null or longhaul_sees_checkpoint(parent_id)",
  },
  delegations: {
    grants: "select, insert (*), update (status, superseded_from, superseded_by)",
    rows: ofSession("delegations"),
    newRows: "longhaul_sees_session(child_id)",
  },
  batches: { grants: WRITE, rows: `owner = ${MINE}` },
  batch_items: {
    grants: WRITE,
    rows: "exists (select 1 from batches b where b.id = batch_items.batch_id)",
  },
  schedules: { grants: "select, insert (*)", rows: `owner = ${MINE}` },
  deleted_sessions: { grants: READ, rows: `owner = ${MINE}` },
  client_roles: { grants: READ, rows: "role = current_user" },
  token_ratios: { grants: READ, rows: "true" },
  // Written by functions and triggers.
  blob_uses: { grants: READ, rows: ofSession("blob_uses") },
  // Accessed through their functions only.
  blobs: "none",
  // For the operator only.
  workers: "none",
  rate_windows: "none",
  open_requests: "none",
  mcp_credentials: "none",
};

/**
 * Of one role at the same time: the server's connections (100 by default) are everybody's. The only limit that a role cannot change for
 * itself. One that the operator has set stays. Chosen: `serve` with many readers has some 20.
 */
const MAX_CONNECTIONS = 50;

/** Each table with a client's rights. @throws Error for a table without declared rights */
export function tableRights(): ReadonlyMap<string, Rights | "none"> {
  const all: readonly unknown[] = Object.values(schema);
  const ofSessions = new Set(sessionTables().map(getTableName));
  const tables = all.filter((exported): exported is PgTable => is(exported, PgTable));
  return new Map(
    tables.map((table) => {
      const name = getTableName(table);
      const usual = ofSessions.has(name) ? { grants: WRITE, rows: ofSession(name) } : undefined;
      const rights = SPECIAL[name] ?? usual;
      if (rights === undefined) throw new Error(`client-rights.ts does not say who may read ${name}`);
      return [name, rights === "none" ? rights : forColumns(table, rights)];
    }),
  );
}

function forColumns(table: PgTable, { grants, rows, newRows }: Rights): Rights {
  const columns = Object.values(getTableColumns(table));
  const isNumbered = ({ columnType }: (typeof columns)[number]) => columnType.includes("Serial");
  const list = (some: typeof columns) => `(${some.map(({ name }) => sqlIdentifier(name)).join(", ")})`;
  // A number is from its sequence, drawn by the same connection: one ahead of it would be in the way of other persons' rows.
  const numbers = columns
    .filter(isNumbered)
    .map(({ name }) => `${name} = currval(pg_get_serial_sequence('${getTableName(table)}', '${name}'))`);
  const conditions = [...(newRows === undefined ? [] : [`(${newRows})`]), ...numbers];
  return {
    grants: grants
      .replace(INSERT, `insert ${list(columns)}`)
      .replace(UPDATE, `update ${list(columns.filter((column) => !isNumbered(column)))}`),
    rows,
    ...(conditions.length === 0 ? {} : { newRows: conditions.join(" and ") }),
  };
}

const policyOf = (table: string, { rows, newRows }: Rights) => `
  drop policy if exists longhaul_client on ${table};
  drop policy if exists longhaul_client_new on ${table};
  create policy longhaul_client on ${table} using (${rows}) with check (${rows});
  ${newRows === undefined ? "" : `create policy longhaul_client_new on ${table} as restrictive for insert with check (${newRows});`}
  alter table ${table} enable row level security`;

const closedTo = (table: string) => `
  drop policy if exists longhaul_client on ${table};
  alter table ${table} enable row level security`;

/**
 * Brings policies and grants up to date with the tables, for all existing roles. Idempotent; locks one table at a time for a
 * moment, and none if nothing has changed.
 * @param connection as the tables' owner or a superuser
 */
export async function applyClientRights(connection: Statements): Promise<void> {
  const { rows } = await connection.query<{ role: string; schema: string; digest: string | null }>(
    `select r.role, current_schema() as schema, obj_description('client_roles'::regclass, 'pg_class') as digest from client_roles r
      join pg_roles p on p.rolname = r.role order by r.role`,
  );
  if (rows.length === 0) return;
  const [rights, schemaName] = [tableRights(), rows[0]?.schema ?? "public"];
  const own = schemaName === "public" ? [] : [schemaName];
  const limits = [ROLE_LIMITS, MAX_CONNECTIONS];
  const digest = digestOf([...rights, ...limits, ...own, ...rows.map(({ role }) => role)]);
  if (rows[0]?.digest === digest) return;
  for (const [table, allowed] of rights)
    await insist(connection, allowed === "none" ? closedTo(table) : policyOf(table, allowed));
  for (const { role } of rows)
    await insist(connection, grantsTo(sqlIdentifier(role), sqlIdentifier(schemaName), rights));
  await connection.query(`comment on table client_roles is '${digest}'`);
}

/** A deadlock; and "tuple concurrently updated": another database's operator changed what the whole server shares. */
const UNDONE = new Set(["40P01", "XX000"]);
/** Chosen by judgement: each takes Postgres the second after which it looks for a deadlock. */
const ATTEMPTS = 10;

/**
 * These statements lock many tables, in another order than a session at work does, and the server may end them for it. All of it is
 * undone then, so it is made again. Not within a transaction.
 */
export async function insist(connection: Statements, statements: string): Promise<void> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      await connection.query(statements);
      return;
    } catch (error) {
      if (attempt === ATTEMPTS || !UNDONE.has(String((error as { code?: unknown }).code))) throw error;
    }
  }
}

function grantsTo(role: string, schemaName: string, rights: ReadonlyMap<string, Rights | "none">): string {
  return [
    `revoke all on all tables in schema ${schemaName} from ${role}`,
    `grant usage on schema ${schemaName} to ${role}`,
    `grant usage on all sequences in schema ${schemaName} to ${role}`,
    `grant execute on function longhaul_blobs(text[]), longhaul_save_blob(text, bytea), longhaul_keep_blob(text, text, bytea),
      longhaul_taken(text[], text, text), longhaul_remove_schedule(text) to ${role}`,
    `grant select on messages, longhaul_migrations to ${role}`,
    ...[...rights].flatMap(([table, allowed]) =>
      allowed === "none" ? [] : [`grant ${allowed.grants} on ${table} to ${role}`],
    ),
    limitsOf(role, schemaName),
  ].join(";\n");
}

/** The name in an identifier, as a text in SQL. */
const literal = (identifier: string) =>
  `'${identifier.slice(1, -1).replaceAll('""', '"').replaceAll("'", "''")}'`;

/** Whoever may not change roles leaves them as `database client` made them. */
const limitsOf = (role: string, schemaName: string) => `do $limits$ begin
    ${Object.entries(ROLE_LIMITS)
      .map(([name, value]) => `alter role ${role} set ${name} = '${value}';`)
      .join("\n    ")}
    ${schemaName === sqlIdentifier("public") ? "" : `alter role ${role} set search_path = ${schemaName};`}
    if exists (select 1 from pg_roles where rolname = ${literal(role)} and rolconnlimit = -1) then
      alter role ${role} connection limit ${MAX_CONNECTIONS};
    end if;
  exception when insufficient_privilege then null;
  end $limits$`;

const digestOf = (value: unknown) => createHash("sha256").update(JSON.stringify(value)).digest("hex");

/** An identifier as SQL writes it. */
export const sqlIdentifier = (name: string) => `"${name.replaceAll('"', '""')}"`;
