/** A server's failures: what they mean, and the texts for calls without a result. */
import {
  ProtocolError,
  SdkError,
  SdkErrorCode,
  SdkHttpError,
  UnauthorizedError,
} from "@modelcontextprotocol/client";
import { isNetworkTrouble, passes, theirWords } from "../contract/errors.ts";
import { failure, type ToolResult } from "../tools/tool.ts";
import { oneLine } from "../tools/paths.ts";
import { McpFailure, type McpCall } from "./mcp.ts";

/** What went wrong, as a clause. */
export function serverReason(error: unknown): string {
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
const isTimeout = (error: unknown): boolean =>
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
const isRefusal = (error: unknown): boolean =>
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
const isUnreadable = (error: unknown): boolean =>
  error instanceof SyntaxError ||
  (error instanceof Error && /^\$?ZodError$/.test(error.name)) ||
  (error instanceof SdkError &&
    [
      SdkErrorCode.InvalidResult,
      SdkErrorCode.UnsupportedResultType,
      SdkErrorCode.ClientHttpUnexpectedContent,
    ].includes(error.code as SdkErrorCode));

/** A call whose outcome is unknown. */
export function unknownEnd({ server, entry, input }: McpCall, why: string): ToolResult {
  return {
    unknown: true,
    text: [
      `It is not known how this call ended: ${why}. It may have happened.`,
      `Sent to the server ${server.name}: ${entry.name} ${oneLine(JSON.stringify(input), 500)}`,
      "It was not sent again. Look at what it has done before you repeat it.",
    ].join("\n"),
  };
}

/** @param sent whether the server may have received the call, and whether a person stopped it */
export function failedCall(
  call: McpCall,
  error: unknown,
  sent: { readonly isSent: boolean; readonly isStopped: boolean },
): ToolResult {
  const { name, settings } = call.server;
  if (sent.isStopped) {
    const text = sent.isSent
      ? `The user stopped this call. The server ${name} was informed; what it did until then may have taken effect.`
      : "[interrupted before it began]";
    return { text, interrupted: true };
  }
  const seconds = (ms: number) => `${ms / 1_000} s`;
  const reason = isTimeout(error)
    ? `${name} did not respond for ${seconds(settings.timeout)}, or took longer than ${seconds(settings.maxTimeout)} (timeout and maxTimeout of this server)`
    : `${name}: ${serverReason(error)}`;
  const again = isPassing(error);
  if (!sent.isSent || isRefusal(error))
    return failure(`The call failed. ${reason}.${again ? " The same call may succeed later." : ""}`);
  if (isUnreadable(error))
    return failure(
      `${name} answered this call, and its answer cannot be read: ${serverReason(error)}. The call was made: look at what it has done before you repeat it.`,
    );
  if (call.isRepeatable) return failure(`The call failed. ${reason}.${again ? " It can be repeated." : ""}`);
  return unknownEnd(call, reason);
}

/** Adds a notice that the server's program is a new one. */
export function withNotice(name: string, result: ToolResult): ToolResult {
  if (result.asks !== undefined) return result;
  const notice = `[The server ${name} was restarted for this call: what was in the memory of its earlier program is gone.]`;
  return { ...result, text: `${notice}\n${result.text}` };
}
