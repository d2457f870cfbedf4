/** The reason for a failure, from its error. Pure. */
import { cutChars } from "./cut-text.ts";

const MAX_LINE_CHARS = 200;

/**
 * The error's message; for any other thrown value, its text. Never a statement of SQL: a query error's own message is the statement
 * with its values, that is, the conversation, and the reason is in its cause.
 */
export function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (!isQueryError(error)) return error.message;
  return error.cause === undefined ? "a query failed" : reasonOf(error.cause);
}

/** An error of the query library, known by its name, because this folder loads no library. */
export const isQueryError = (error: unknown): boolean =>
  error instanceof Error &&
  (error.constructor.name === "DrizzleQueryError" || error.message.startsWith("Failed query: "));

/** The innermost error's message, on one line: outer ones, such as "fetch failed", do not give the reason. */
export function innermostReason(error: unknown): string {
  let inner = error;
  while (inner instanceof Error && (inner.cause instanceof Error || inner instanceof AggregateError)) {
    inner = inner instanceof AggregateError ? inner.errors[0] : inner.cause;
  }
  const text = inner instanceof Error && inner.message === "" ? inner.name : reasonOf(inner);
  return cutChars(text.split("\n")[0] ?? "", MAX_LINE_CHARS);
}
