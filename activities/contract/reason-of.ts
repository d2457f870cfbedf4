/** The reason for a failure, from its error. Pure. */
import { shorten } from "./cut-text.ts";

const MAX_CHARS = 500;

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
  while (inner instanceof Error) {
    const next: unknown = inner instanceof AggregateError ? inner.errors[0] : inner.cause;
    if (!(next instanceof Error)) break;
    inner = next;
  }
  return theirWords(inner instanceof Error && inner.message === "" ? inner.name : reasonOf(inner));
}

/** Where in a program it happened: a stack's lines. */
const STACK = /^\s*at .+(:\d+|\))$/;

/**
 * What another program said, on one line and without characters that control a terminal. If it does not fit, the lines that say why come
 * first: they are not always the first ones.
 */
export function theirWords(text: string, maxChars = MAX_CHARS): string {
  const lines = text
    .split(/[\r\n]+/)
    .map((line) => line.replaceAll(/[\p{Cc} ]+/gu, " ").trim())
    .filter((line) => /[\p{L}\p{N}]/u.test(line) && !STACK.test(line));
  const all = inOneLine(lines);
  if (all.length <= maxChars) return all;
  const telling = lines.filter(saysWhy);
  return shorten(inOneLine([...telling, ...lines.filter((line) => !saysWhy(line))]), maxChars);
}

/** What is wrong, and not only that something is. */
export const saysWhy = (line: string): boolean =>
  /error|fail|denied|declined|refused|reject|not allowed|cannot|must |exceed|limit|violat|protect|required|too large|invalid|expired/i.test(
    line,
  );

/** Lines as clauses of one sentence. */
export const inOneLine = (lines: readonly string[]): string =>
  lines.reduce(
    (said, line) => (said === "" ? line : `${said}${/[.,:;!?]$/.test(said) ? " " : "; "}${line}`),
    "",
  );
