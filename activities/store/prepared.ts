/** Queries that are built and planned once, and not for each time that they are asked. */
import type { Queryable } from "./db.ts";

/**
 * @param build ends with `prepare(NAME)`; a connection knows the statement by that name, so it is one for each query
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
