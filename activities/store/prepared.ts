/** Queries that are built and planned once instead of on every use. */
import type { Queryable } from "./db.ts";

/**
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
