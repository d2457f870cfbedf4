/** Statements in references to columns, in the words that the driver and the server take. */
import type { SQL } from "drizzle-orm";
import { PgDialect } from "drizzle-orm/pg-core";

/** A statement for the driver itself: on a connection of its own, or where an error has to be the driver's. */
export function forDriver(statement: SQL): { readonly text: string; readonly values: unknown[] } {
  const { sql: text, params } = new PgDialect().sqlToQuery(statement);
  return { text, values: params };
}

/** The words of a statement without values, as the server wants it where it changes tables and rights. @throws TypeError if it has some */
export function statementText(statement: SQL): string {
  const { text, values } = forDriver(statement);
  if (values.length > 0) throw new TypeError(`This statement takes no values: ${text}`);
  return text;
}
