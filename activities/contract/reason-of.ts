/** The reason for a failure, from its error. Pure. */
import { cutChars } from "./cut-text.ts";

const MAX_LINE_CHARS = 200;

/** The error's message; for any other thrown value, its text. */
export function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** The innermost error's message, on one line: outer ones, such as "fetch failed", do not give the reason. */
export function innermostReason(error: unknown): string {
  let inner = error;
  while (inner instanceof Error && (inner.cause instanceof Error || inner instanceof AggregateError)) {
    inner = inner instanceof AggregateError ? inner.errors[0] : inner.cause;
  }
  const text = inner instanceof Error && inner.message === "" ? inner.name : reasonOf(inner);
  return cutChars(text.split("\n")[0] ?? "", MAX_LINE_CHARS);
}
