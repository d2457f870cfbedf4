/** Tells Postgres' errors, with or without a code, from all others, and whether they may pass. */
import pg from "pg";
import { isConnectionLost } from "./lost-connection.ts";

export interface DatabaseError {
  /** Its own words, without the query or its parameters. */
  readonly message: string;
  /** The same the next time: a fault in our statement or our data. */
  readonly final: boolean;
  /**
   * The statement names what this database has not (class 42), or a row does not fit its tables: a bug in Longhaul, or tables
   * newer than this code.
   */
  readonly unknownToSchema: boolean;
}

/** Of the connection, by Node. */
const NETWORK = new Set([
  "ECONNREFUSED",
  "ECONNRESET",
  "ECONNABORTED",
  "EPIPE",
  "ETIMEDOUT",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "ENOTFOUND",
  "EAI_AGAIN",
]);
/** A value is missing, or not one of those that a check allows. */
const ROW_CODES = new Set(["23502", "23514"]);

/**
 * A query's own message carries its parameters, that is, the transcript: only the cause's words go out.
 * Data exceptions (class 22) and rejected statements (42) are the same the next time; a lost connection (08), a full
 * disk or too many connections (53), a shutdown (57), a lost race (40), a damaged disk (58) may pass.
 * @returns undefined for what is not an error of the database
 */
export function databaseErrorOf(error: unknown): DatabaseError | undefined {
  if (!(error instanceof Error)) return undefined;
  const isQuery = error.constructor.name === "DrizzleQueryError";
  const cause = isQuery && error.cause instanceof Error ? error.cause : error;
  const code = "code" in cause && typeof cause.code === "string" ? cause.code : "";
  const isOurs = isQuery || cause instanceof pg.DatabaseError || NETWORK.has(code) || isConnectionLost(cause);
  if (!isOurs) return undefined;
  const words = isQuery && cause === error ? "a query failed" : cause.message || "no answer";
  return {
    message: code === "" ? words : `${words} (${code})`,
    final: /^(22|42)/.test(code),
    unknownToSchema: code.startsWith("42") || ROW_CODES.has(code),
  };
}
