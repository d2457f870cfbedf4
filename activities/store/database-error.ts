/** Distinguishes Postgres' errors, with or without a code, from all others, and says whether a retry may succeed. */
import pg from "pg";
import { isNetworkCode, isNetworkTrouble, passes, isQueryError, reasonOf } from "../contract/errors.ts";
import { isConnectionLost } from "./connections.ts";

export interface DatabaseError {
  /** Postgres' own message, without the query or its parameters. */
  readonly message: string;
  /** A retry would fail in the same way. */
  readonly final: boolean;
  /**
   * The statement names something that this database does not have (class 42), or a row does not fit its tables: a bug in
   * Longhaul, or tables newer than this code.
   */
  readonly unknownToSchema: boolean;
}

/** A value is missing, or a check does not allow it. */
const ROW_CODES = new Set(["23502", "23514"]);

/**
 * The query error's own message carries its parameters, that is, the transcript, so only the cause's message is returned. What
 * may be temporary: contract/passing.ts.
 * @returns undefined if it is not an error of the database
 */
export function databaseErrorOf(error: unknown): DatabaseError | undefined {
  if (!(error instanceof Error)) return undefined;
  const isQuery = isQueryError(error);
  const cause = causeOf(error);
  const code = "code" in cause && typeof cause.code === "string" ? cause.code : "";
  // Of a file or a program, if it has a path.
  const isOfNetwork = isNetworkCode(code) && !("path" in cause);
  const isOurs = isQuery || cause instanceof pg.DatabaseError || isOfNetwork || isConnectionLost(cause);
  if (!isOurs) return undefined;
  const reason = reasonOf(cause) || "no answer";
  return {
    message: code === "" ? reason : `${reason} (${code})`,
    final: !isNetworkTrouble(cause) && !isConnectionLost(cause) && !passes.postgres(code),
    unknownToSchema: code.startsWith("42") || ROW_CODES.has(code),
  };
}

/** What the query failed with; the query's own error if nothing is known. */
function causeOf(error: Error): Error {
  return isQueryError(error) && error.cause instanceof Error ? causeOf(error.cause) : error;
}
