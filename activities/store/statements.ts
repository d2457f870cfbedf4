/** What the query builder lacks, in references to columns: inserts from a query, copies of rows, statements with a name. */
import {
  fillPlaceholders,
  getTableColumns,
  is,
  isSQLWrapper,
  Param,
  Placeholder,
  sql,
  SQL,
  StringChunk,
} from "drizzle-orm";
import { PgDialect, QueryBuilder, type PgColumn, type PgTable } from "drizzle-orm/pg-core";
import type pg from "pg";
import type { Queryable } from "./db.ts";

/** Builds queries without a connection, as parts of others. */
export const part = new QueryBuilder();

/** What `exists` selects. */
export const ANY = { any: sql`1` };

/**
 * A query that is built and planned once instead of on every use.
 * @param build ends with `prepare(NAME)`; connections identify the statement by that name, so it is unique to the query
 * @returns the query for a store or a transaction
 */
export function prepared<T>(build: (db: Queryable) => T): (db: Queryable) => T {
  const built = new WeakMap<Queryable, T>();
  return (db) => {
    const query = built.get(db) ?? build(db);
    built.set(db, query);
    return query;
  };
}

/**
 * As `prepared`, for a statement that the builder cannot express. Each placeholder is sent once, however often it is named.
 * @param name unique to the statement
 */
export function named(
  name: string,
  statement: SQL,
): (on: Pick<pg.Pool, "query">, values: Readonly<Record<string, unknown>>) => Promise<pg.QueryResult> {
  const { sql: numbered, params } = new PgDialect().sqlToQuery(statement);
  const all = [...new Set(params.map(nameOf))];
  const text = numbered.replaceAll(
    /\$(\d+)/g,
    (_, at: string) => `$${all.indexOf(nameOf(params[Number(at) - 1])) + 1}`,
  );
  return (on, values) =>
    on.query({
      name,
      text,
      values: fillPlaceholders(
        all.map((one) => new Placeholder(one)),
        { ...values },
      ),
    });
}

/**
 * A statement that is put into words once, for a store and for transactions: composing it took a quarter of the time of an append.
 * @returns the statement with these values in place of the placeholders
 */
export function composed(statement: SQL): (values: Readonly<Record<string, unknown>>) => SQL {
  const { sql: numbered, params } = new PgDialect().sqlToQuery(statement);
  const names = params.map(nameOf);
  const pieces = numbered.split(/\$\d+/).map((piece) => new StringChunk(piece));
  return (values) =>
    new SQL(
      pieces.flatMap((piece, at) => {
        const name = names[at];
        return name === undefined ? [piece] : [piece, new Param(values[name])];
      }),
    );
}

function nameOf(value: unknown): string {
  if (!is(value, Placeholder))
    throw new TypeError("A statement with a name takes its values by placeholders.");
  return value.name;
}

/** A column's name alone, where SQL allows no table before it. */
export const bare = ({ name }: Pick<PgColumn, "name">): SQL => sql`${sql.identifier(name)}`;

/** The value that an insert which met another row would have stored. */
export const excluded = (column: PgColumn): SQL => sql`excluded.${bare(column)}`;

/** For SET. */
export const assigned = (...pairs: readonly (readonly [column: PgColumn, value: unknown])[]): SQL =>
  listed(pairs.map(([column, value]) => sql`${bare(column)} = ${valueFor(column, value)}`));

export const equalsAny = (column: PgColumn | SQL, values: readonly string[]): SQL =>
  sql`${column} = any(${sql.param([...values])}::text[])`;

const listed = (items: readonly SQL[]): SQL => sql.join([...items], sql`, `);

const valueFor = (column: PgColumn, value: unknown) =>
  isSQLWrapper(value) ? value : sql.param(value, column);

type Values<T extends PgTable> = { readonly [K in keyof T["_"]["columns"]]?: unknown };

/**
 * `insert into … select …`, with the values by the table's own fields.
 * @param rest what follows the values: FROM, WHERE, ON CONFLICT, RETURNING
 */
export function insertFrom<T extends PgTable>(table: T, values: Values<T>, rest: SQL, distinct = sql``): SQL {
  const columns: Readonly<Record<string, PgColumn>> = getTableColumns(table);
  const pairs = Object.entries(values).flatMap(([key, value]) => {
    const column = columns[key];
    return column === undefined ? [] : [[column, valueFor(column, value)] as const];
  });
  const names = listed(pairs.map(([column]) => bare(column)));
  return sql`insert into ${table} (${names}) select ${distinct} ${listed(pairs.map(([, value]) => sql`${value}`))} ${rest}`;
}

/**
 * Copies rows of a table with all that they hold, save for what is given instead. Columns that number themselves do so.
 * @param rest what follows FROM TABLE
 */
export function copyRows<T extends PgTable>(table: T, instead: Values<T>, rest: SQL, distinct = sql``): SQL {
  const all = Object.entries(getTableColumns(table) as Record<string, PgColumn>);
  const columns = Object.fromEntries(all.filter(([, { columnType }]) => !columnType.includes("Serial")));
  return insertFrom(table, { ...columns, ...instead } as Values<T>, sql`from ${table} ${rest}`, distinct);
}
