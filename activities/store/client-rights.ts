/**
 * What a role of a client may do in the database: see and change the sessions of its owner, and nothing else. The tables' owner,
 * as whom workers connect, is not held by any of it. Nothing here is in force until a role is in `client_roles`.
 */
import { createHash } from "node:crypto";
import { getTableName, is } from "drizzle-orm";
import { PgTable } from "drizzle-orm/pg-core";
import { sessionTables } from "./session-tables.ts";
import * as schema from "./schema/index.ts";

/** What runs statements one by one. */
interface Statements {
  query<Row>(text: string, values?: readonly unknown[]): Promise<{ readonly rows: Row[] }>;
}

interface Rights {
  /** As in `grant … on table`. Nothing is ever deleted by a client but a schedule. */
  readonly grants: string;
  /** The rows that are seen and changed. */
  readonly rows: string;
  /** What a new row must also fulfil. */
  readonly newRows?: string;
}

const MINE = "(select c.owner from client_roles c where c.role = current_user)";
/** Of another owner there is no row in `sessions`, as its own policy says. By the primary key. */
const ofSession = (table: string) => `exists (select 1 from sessions s where s.id = ${table}.session_id)`;
const READ = "select";
const WRITE = "select, insert, update";

/** Tables that are not like the others of a session, by name. */
const SPECIAL: Readonly<Record<string, Rights | "none">> = {
  sessions: {
    // What a run and another model change. Where its sandbox is, and whose it is, no client changes.
    grants:
      "select, insert, update (status, ended_at, result, error, updated_at, epoch, run_id, restore_workspace, config)",
    rows: `owner = ${MINE}`,
    // Delegates are made by workers, which trust them as far as their parents.
    newRows: "container is null and parent_id is null",
  },
  // A worker finds by it the sandbox that it trusts.
  boxes: { grants: "select, update (saves_begun)", rows: ofSession("boxes") },
  model_calls: { grants: READ, rows: ofSession("model_calls") },
  // What a worker reads on behalf of a session is that owner's too.
  checkpoints: {
    grants: "select, insert, update (superseded_epoch)",
    rows: ofSession("checkpoints"),
    newRows: "parent_id is null or longhaul_sees_checkpoint(parent_id)",
  },
  delegations: {
    grants: "select, insert, update (status)",
    rows: ofSession("delegations"),
    newRows: "longhaul_sees_session(child_id)",
  },
  batches: { grants: WRITE, rows: `owner = ${MINE}` },
  batch_items: {
    grants: WRITE,
    rows: "exists (select 1 from batches b where b.id = batch_items.batch_id)",
  },
  schedules: { grants: "select, insert, delete", rows: `owner = ${MINE}` },
  deleted_sessions: { grants: READ, rows: `owner = ${MINE}` },
  client_roles: { grants: READ, rows: "role = current_user" },
  token_ratios: { grants: READ, rows: "true" },
  // By their functions alone.
  blobs: "none",
  // Of the operator.
  workers: "none",
  rate_windows: "none",
  open_requests: "none",
  mcp_credentials: "none",
};

/** Each table with a client's rights. @throws Error for a table without declared rights */
export function tableRights(): ReadonlyMap<string, Rights | "none"> {
  const all: readonly unknown[] = Object.values(schema);
  const ofSessions = new Set(sessionTables().map(getTableName));
  const names = all.filter((each): each is PgTable => is(each, PgTable)).map(getTableName);
  return new Map(
    names.map((name) => {
      const usual = ofSessions.has(name) ? { grants: WRITE, rows: ofSession(name) } : undefined;
      const rights = SPECIAL[name] ?? usual;
      if (rights === undefined) throw new Error(`client-rights.ts does not say who may read ${name}`);
      return [name, rights];
    }),
  );
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
 * Brings policies and grants up to date with the tables, for the roles that there are. Idempotent; locks a table for a moment, one
 * after the other, and none if nothing has changed.
 * @param connection as the tables' owner or a superuser
 */
export async function applyClientRights(connection: Statements): Promise<void> {
  const { rows } = await connection.query<{ role: string; digest: string | null }>(
    `select r.role, obj_description('client_roles'::regclass, 'pg_class') as digest from client_roles r
      join pg_roles p on p.rolname = r.role order by r.role`,
  );
  if (rows.length === 0) return;
  const rights = tableRights();
  const digest = digestOf([...rights, ...rows.map(({ role }) => role)]);
  if (rows[0]?.digest === digest) return;
  for (const [table, each] of rights)
    await connection.query(each === "none" ? closedTo(table) : policyOf(table, each));
  for (const { role } of rows) await connection.query(grantsTo(quoted(role), rights));
  await connection.query(`comment on table client_roles is '${digest}'`);
}

function grantsTo(role: string, rights: ReadonlyMap<string, Rights | "none">): string {
  return [
    `revoke all on all tables in schema public from ${role}`,
    `grant usage on schema public to ${role}`,
    `grant usage on all sequences in schema public to ${role}`,
    `grant execute on function longhaul_blobs(text[]), longhaul_save_blob(text, bytea) to ${role}`,
    `grant select on messages, longhaul_migrations to ${role}`,
    ...[...rights].flatMap(([table, each]) =>
      each === "none" ? [] : [`grant ${each.grants} on ${table} to ${role}`],
    ),
  ].join(";\n");
}

const digestOf = (value: unknown) => createHash("sha256").update(JSON.stringify(value)).digest("hex");

/** An identifier as SQL writes it. */
export const quoted = (name: string) => `"${name.replaceAll('"', '""')}"`;
