/**
 * What a client's role may do in the database: see and change the sessions of its owner, and nothing else. None of this restricts
 * the tables' owner, the role with which workers connect. Nothing here is in force until `client_roles` has a role.
 */
import { createHash } from "node:crypto";
import { getTableColumns, getTableName, is, sql, type SQL } from "drizzle-orm";
import { getViewConfig, PgTable, type PgColumn } from "drizzle-orm/pg-core";
import { idPatterns } from "../contract/session-ids.ts";
import { sessionTables } from "./session-tables.ts";
import * as schema from "./schema/index.ts";
import { statementText } from "./plain-statements.ts";

/** Runs statements one by one. */
interface Statements {
  query<Row>(text: string, values?: readonly unknown[]): Promise<{ readonly rows: Row[] }>;
}

/**
 * Every row that the role may see it may read. Rights to insert and to update are per column, because one for the whole table is also
 * the right to lock it. Nothing may be deleted: a schedule is removed by a function.
 */
interface Declared {
  /** All columns of the table. */
  readonly inserts?: true;
  /** `all`: the columns that have no number from a sequence. */
  readonly updates?: "all" | readonly PgColumn[];
  /** Condition for rows that the role may see and change. */
  readonly rows: SQL;
  /** A further condition for new rows. */
  readonly newRows?: SQL;
}

/** The same in words. */
interface Rights {
  /** As in `grant … on table`. */
  readonly grants: string;
  readonly rows: string;
  readonly newRows?: string;
}

const { sessions, clientRoles } = schema;
/** Its comment says which rights are in force. */
const ROLES = getTableName(clientRoles);
const isMine = (owner: PgColumn): SQL =>
  sql`${owner} = (select ${clientRoles.owner} from ${clientRoles} where ${clientRoles.role} = current_user)`;
/** The policy of `sessions` hides the rows of other owners. Looks up the primary key. */
const ofSession = ({ sessionId }: { readonly sessionId: PgColumn }): SQL =>
  sql`exists (select from ${sessions} where ${sessions.id} = ${sessionId})`;
const WRITE = { inserts: true, updates: "all" } as const;

/** A role that waits, computes or keeps a transaction open for longer is ended by Postgres. Chosen: a large export takes a minute. */
const ROLE_LIMITS = {
  statement_timeout: "5min",
  lock_timeout: "30s",
  idle_in_transaction_session_timeout: "60s",
} as const;

/** Tables whose rights differ from those of a session's other tables. */
const SPECIAL: ReadonlyMap<PgTable, Declared | "none"> = new Map<PgTable, Declared | "none">([
  [
    sessions,
    {
      inserts: true,
      // What a new run or a model switch changes. No client changes its sandbox's location or its owner.
      updates: [
        sessions.status,
        sessions.endedAt,
        sessions.result,
        sessions.error,
        sessions.verified,
        sessions.updatedAt,
        sessions.epoch,
        sessions.runId,
        sessions.restoreWorkspace,
        sessions.config,
        sessions.namespace,
      ],
      rows: isMine(sessions.owner),
      // Only workers create delegates, which they trust as far as their parents, and other sessions with derived ids.
      newRows: sql`${sessions.container} is null and ${sessions.parentId} is null and ${sessions.runId} is null
        and ${sessions.id} ~ ${text(idPatterns.chosen)} and ${sessions.id} !~* ${text(idPatterns.derived)}`,
    },
  ],
  // Workers use these rows to find the sandbox that they trust.
  [schema.sandboxes, { updates: [schema.sandboxes.savesBegun], rows: ofSession(schema.sandboxes) }],
  [schema.modelCalls, { rows: ofSession(schema.modelCalls) }],
  // Checkpoints that a worker reads on behalf of a session must belong to the same owner.
  [
    schema.checkpoints,
    {
      inserts: true,
      updates: [schema.checkpoints.supersededEpoch, schema.checkpoints.supersededBy],
      rows: ofSession(schema.checkpoints),
      newRows: sql`(${schema.checkpoints.parentId} is null or longhaul_sees_checkpoint(${schema.checkpoints.parentId}))
        and (${schema.checkpoints.baseKey} is null or longhaul_sees_base(${schema.checkpoints.baseKey}))
        and (${schema.checkpoints.packObject} is null or longhaul_sees_object(${schema.checkpoints.packObject}))`,
    },
  ],
  // Made by workers; read with the saves that list their difference to one.
  [
    schema.bases,
    {
      rows: sql`exists (select from ${schema.checkpoints} where ${schema.checkpoints.baseKey} = ${schema.bases.key})`,
    },
  ],
  [
    schema.delegations,
    {
      inserts: true,
      updates: [
        schema.delegations.status,
        schema.delegations.supersededFrom,
        schema.delegations.supersededBy,
      ],
      rows: ofSession(schema.delegations),
      newRows: sql`longhaul_sees_session(${schema.delegations.childId})`,
    },
  ],
  [schema.batches, { ...WRITE, rows: isMine(schema.batches.owner) }],
  [
    schema.batchItems,
    {
      ...WRITE,
      rows: sql`exists (select from ${schema.batches} where ${schema.batches.id} = ${schema.batchItems.batchId})`,
    },
  ],
  [schema.schedules, { inserts: true, rows: isMine(schema.schedules.owner) }],
  [schema.deletedSessions, { rows: isMine(schema.deletedSessions.owner) }],
  [clientRoles, { rows: sql`${clientRoles.role} = current_user` }],
  [schema.tokenRatios, { rows: sql`true` }],
  [schema.spending, { rows: isMine(schema.spending.owner) }],
  [schema.verifications, { rows: ofSession(schema.verifications) }],
  // Their rows say what is pushed to and written on a forge with the worker's rights.
  [schema.follows, { rows: ofSession(schema.follows) }],
  [schema.followRounds, { rows: ofSession(schema.followRounds) }],
  [schema.followReplies, { rows: ofSession(schema.followReplies) }],
  // Written by functions and triggers.
  [schema.blobUses, { rows: ofSession(schema.blobUses) }],
  // Accessed through their functions only.
  [schema.blobs, "none"],
  // Saves name them.
  [schema.storedObjects, "none"],
  // For the operator only.
  [schema.workers, "none"],
  [schema.sandboxHosts, "none"],
  [schema.warms, "none"],
  [schema.warmBases, "none"],
  [schema.installation, "none"],
  [schema.rateWindows, "none"],
  [schema.openRequests, "none"],
  [schema.budgetWarnings, "none"],
  [schema.budgetReservations, "none"],
  // Written by workers: no client allows itself anything.
  [schema.budgetAllowances, { rows: ofSession(schema.budgetAllowances) }],
  [schema.mcpCredentials, "none"],
]);

/**
 * Of one role at the same time: the server's connections (100 by default) are everybody's. The only limit that a role cannot change for
 * itself. One that the operator has set stays. Chosen: `serve` with many readers has some 20.
 */
const MAX_CONNECTIONS = 50;

/** What a role may call. */
const FUNCTIONS = `longhaul_blobs(text[]), longhaul_save_blob(text, bytea), longhaul_keep_blob(text, text, bytea),
  longhaul_taken(text[], text, text), longhaul_remove_schedule(text), longhaul_installation()`;

/** Each table with a client's rights, by its name. @throws Error for a table without declared rights */
export function tableRights(): ReadonlyMap<string, Rights | "none"> {
  const all: readonly unknown[] = Object.values(schema);
  const usual = new Map<PgTable, Declared>(
    sessionTables().map((table) => [table, { ...WRITE, rows: ofSession(table) }]),
  );
  const tables = all.filter((exported): exported is PgTable => is(exported, PgTable));
  return new Map(
    tables.map((table) => {
      const name = getTableName(table);
      const rights = SPECIAL.get(table) ?? usual.get(table);
      if (rights === undefined) throw new Error(`client-rights.ts does not say who may read ${name}`);
      return [name, rights === "none" ? rights : inWords(table, rights)];
    }),
  );
}

function inWords(table: PgTable, { inserts, updates, rows, newRows }: Declared): Rights {
  const columns: PgColumn[] = Object.values(getTableColumns(table));
  const isNumbered = ({ columnType }: PgColumn) => columnType.includes("Serial");
  const list = (some: readonly PgColumn[]) =>
    sql`(${sql.join(
      some.map(({ name }) => sql.identifier(name)),
      sql`, `,
    )})`;
  const changed = updates === "all" ? columns.filter((column) => !isNumbered(column)) : updates;
  const grants = [
    sql`select`,
    ...(inserts ? [sql`insert ${list(columns)}`] : []),
    ...(changed ? [sql`update ${list(changed)}`] : []),
  ];
  // A number is from its sequence, drawn by the same connection: one ahead of it would be in the way of other persons' rows.
  const sequence = ({ name }: PgColumn) =>
    sql`pg_get_serial_sequence(${text(getTableName(table))}, ${text(name)})`;
  const numbers = columns.filter(isNumbered).map((column) => sql`${column} = currval(${sequence(column)})`);
  const conditions = [...(newRows === undefined ? [] : [sql`(${newRows})`]), ...numbers];
  return {
    grants: statementText(sql.join(grants, sql`, `)),
    rows: statementText(rows),
    newRows: conditions.length === 0 ? undefined : statementText(sql.join(conditions, sql` and `)),
  };
}

/** A text in a statement that takes no values. */
function text(value: string): SQL {
  return sql.raw(`'${value.replaceAll("'", "''")}'`);
}

const policiesOf = (table: string, { rows, newRows }: Rights) => `
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
  const { rows } = await connection.query<{ role: string; schema: string; comment: string | null }>(
    statementText(sql`select ${clientRoles.role}, current_schema() as schema,
        obj_description(${text(ROLES)}::regclass, 'pg_class') as comment
      from ${clientRoles} join pg_roles p on p.rolname = ${clientRoles.role} order by ${clientRoles.role}`),
  );
  if (rows.length === 0) return;
  const [rights, schemaName] = [tableRights(), rows[0]?.schema ?? "public"];
  const ownSchema = schemaName === "public" ? [] : [schemaName];
  const limits = [ROLE_LIMITS, MAX_CONNECTIONS, FUNCTIONS];
  const digest = digestOf([...rights, ...limits, ...ownSchema, ...rows.map(({ role }) => role)]);
  if (rows[0]?.comment === digest) return;
  for (const [table, allowed] of rights)
    await insist(connection, allowed === "none" ? closedTo(table) : policiesOf(table, allowed));
  for (const { role } of rows) await insist(connection, grantsTo(role, schemaName, rights));
  await connection.query(`comment on table ${ROLES} is '${digest}'`);
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

function grantsTo(name: string, schemaName: string, rights: ReadonlyMap<string, Rights | "none">): string {
  const [role, quotedSchema] = [sqlIdentifier(name), sqlIdentifier(schemaName)];
  return [
    `revoke all on all tables in schema ${quotedSchema} from ${role}`,
    `grant usage on schema ${quotedSchema} to ${role}`,
    `grant usage on all sequences in schema ${quotedSchema} to ${role}`,
    `grant execute on function ${FUNCTIONS} to ${role}`,
    `grant select on ${getViewConfig(schema.messages).name}, longhaul_migrations to ${role}`,
    ...[...rights].flatMap(([table, allowed]) =>
      allowed === "none" ? [] : [`grant ${allowed.grants} on ${table} to ${role}`],
    ),
    limitsOf(name, schemaName),
  ].join(";\n");
}

/** Whoever may not change roles leaves them as `database client` made them. */
function limitsOf(name: string, schemaName: string): string {
  const role = sql.identifier(name);
  const limits = Object.entries(ROLE_LIMITS).map(
    ([setting, value]) => sql`alter role ${role} set ${sql.raw(setting)} = ${text(value)};`,
  );
  const path = sql`alter role ${role} set search_path = ${sql.identifier(schemaName)};`;
  return statementText(sql`do $limits$ begin
    ${sql.join(limits)}
    ${schemaName === "public" ? sql`` : path}
    if exists (select 1 from pg_roles where rolname = ${text(name)} and rolconnlimit = -1) then
      alter role ${role} connection limit ${sql.raw(String(MAX_CONNECTIONS))};
    end if;
  exception when insufficient_privilege then null;
  end $limits$`);
}

const digestOf = (value: unknown) => createHash("sha256").update(JSON.stringify(value)).digest("hex");

/** An identifier as SQL writes it. */
export const sqlIdentifier = (name: string) => `"${name.replaceAll('"', '""')}"`;
