/** Texts for a server's failures. */
import {
  ProtocolError,
  SdkError,
  SdkErrorCode,
  SdkHttpError,
  UnauthorizedError,
} from "@modelcontextprotocol/client";
import { isNetworkTrouble, passes, theirWords } from "../contract/errors.ts";

/** Its message is for people and the model, and does not name the server. */
export class McpFailure extends Error {
  override readonly name = "McpFailure";
}

/** What went wrong, as a clause. */
export function reasonOf(error: unknown): string {
  const cause = innermost(error);
  if (cause instanceof McpFailure) return cause.message;
  if (error instanceof UnauthorizedError) return "it requires a login or another token (401)";
  if (error instanceof SdkHttpError)
    return `it ${error.status === 401 ? "requires a login or another token (401)" : `answered with HTTP status ${error.status}`}: ${theirWords(error.message)}`;
  if (error instanceof SdkError && error.code === SdkErrorCode.RequestTimeout)
    return "it did not answer in time";
  if (error instanceof ProtocolError) return `it answered with the error ${theirWords(error.message)}`;
  return theirWords(cause instanceof Error ? cause.message || cause.name : String(cause));
}

/** fetch and the library wrap the system's error. */
function innermost(error: unknown): unknown {
  let inner = error;
  for (let depth = 0; depth < 8 && inner instanceof Error; depth += 1) {
    const data = inner instanceof SdkError ? (inner.data as { cause?: unknown } | undefined) : undefined;
    const next: unknown = inner instanceof AggregateError ? inner.errors[0] : (inner.cause ?? data?.cause);
    if (next === undefined || next === null) break;
    inner = next;
  }
  return inner;
}

/** One of our time limits passed without an answer. */
export const isTimeout = (error: unknown): boolean =>
  error instanceof SdkError && error.code === SdkErrorCode.RequestTimeout;

/** Whether waiting helps: a connection, a server that cannot at the moment. Anything else is told at once. */
export function isPassing(error: unknown): boolean {
  if (error instanceof SdkHttpError) return passes.mcp(error.status);
  if (error instanceof ProtocolError) return passes.mcp(error.code);
  if (error instanceof SdkError && passes.mcp(error.code)) return true;
  return isNetworkTrouble(innermost(error));
}

/** Statuses of a 4xx that do not say whether the request was begun: a time-out, and a connection that a proxy saw close. */
const UNCLEAR: ReadonlySet<number> = new Set([408, 460, 499]);
/** Not implemented, and another version of HTTP. */
const NEVER_BEGUN: ReadonlySet<number> = new Set([501, 505]);

/** The server refused the request or its sender before it did anything. */
export const isRefusal = (error: unknown): boolean =>
  error instanceof UnauthorizedError ||
  error instanceof ProtocolError ||
  (error instanceof SdkHttpError &&
    (NEVER_BEGUN.has(error.status) ||
      (error.status >= 400 && error.status < 500 && !UNCLEAR.has(error.status))));

/** Statuses and words of a refusal because of a session, besides 404. Source: what servers of several languages send. */
const REFUSED: ReadonlySet<number | undefined> = new Set([400, 409, 410, 422]);
const OF_SESSION = /\bsessions?\b|session[-_ ]?id|initiali[sz]/i;

/**
 * The server has forgotten the session that a request named, and refused it for that. Servers say so by 404, as the protocol has
 * it, or by another refusal in words.
 */
export const isStaleSession = (error: unknown): boolean =>
  error instanceof SdkHttpError &&
  (error.status === 404 || (REFUSED.has(error.status) && OF_SESSION.test(error.message)));

/** The server has answered, in a form that cannot be read. */
export const isUnreadable = (error: unknown): boolean =>
  error instanceof SyntaxError ||
  (error instanceof Error && /^\$?ZodError$/.test(error.name)) ||
  (error instanceof SdkError &&
    [
      SdkErrorCode.InvalidResult,
      SdkErrorCode.UnsupportedResultType,
      SdkErrorCode.ClientHttpUnexpectedContent,
    ].includes(error.code as SdkErrorCode));
