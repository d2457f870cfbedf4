/** Distinguishes Postgres' errors, with or without a code, from all others, and says whether a retry may succeed. */
import pg from "pg";
import { isQueryError, reasonOf } from "../contract/reason-of.ts";
import { isConnectionLost } from "./lost-connection.ts";

export interface DatabaseError {
  /** Postgres' own message, without the query or its parameters. */
  readonly message: string;
  /** A retry would fail in the same way: a fault in our statement or our data. */
  readonly final: boolean;
  /**
   * The statement names something that this database does not have (class 42), or a row does not fit its tables: a bug in
   * Longhaul, or tables newer than this code.
   */
  readonly unknownToSchema: boolean;
}

/** Node's codes for connection errors. */
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
/** A value is missing, or a check does not allow it. */
const ROW_CODES = new Set(["23502", "23514"]);

/**
 * The query error's own message carries its parameters, that is, the transcript, so only the cause's message is returned.
 * Data exceptions (class 22) and rejected statements (42) fail again when retried; a lost connection (08), a full disk or
 * too many connections (53), a shutdown (57), a lost race (40), a damaged disk (58) may be temporary.
 * @returns undefined if it is not an error of the database
 */
export function databaseErrorOf(error: unknown): DatabaseError | undefined {
  if (!(error instanceof Error)) return undefined;
  const isQuery = isQueryError(error);
  const cause = causeOf(error);
  const code = "code" in cause && typeof cause.code === "string" ? cause.code : "";
  const isOurs = isQuery || cause instanceof pg.DatabaseError || NETWORK.has(code) || isConnectionLost(cause);
  if (!isOurs) return undefined;
  const words = reasonOf(cause) || "no answer";
  return {
    message: code === "" ? words : `${words} (${code})`,
    final: /^(22|42)/.test(code),
    unknownToSchema: code.startsWith("42") || ROW_CODES.has(code),
  };
}

/** What the query failed with; the query's own error if nothing is known. */
function causeOf(error: Error): Error {
  return isQueryError(error) && error.cause instanceof Error ? causeOf(error.cause) : error;
}
