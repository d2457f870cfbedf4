/**
 * Errors of others: what they say, and which pass by themselves. There is one table for each boundary; whatever is in none of them is told at
 * once, in the other side's own words, because waiting would not change it.
 */
import { shorten } from "../text/cut.ts";

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
    (sentence, line) =>
      sentence === "" ? line : `${sentence}${/[.,:;!?]$/.test(sentence) ? " " : "; "}${line}`,
    "",
  );

/** Codes of the system and of undici for a connection that failed, whatever it is to. A certificate that is not trusted is none. */
const NETWORK: ReadonlySet<string> = new Set([
  "ECONNREFUSED",
  "ECONNRESET",
  "ECONNABORTED",
  "EPIPE",
  "ETIMEDOUT",
  "ESOCKETTIMEDOUT",
  "EHOSTUNREACH",
  "EHOSTDOWN",
  "ENETUNREACH",
  "ENETDOWN",
  "ENETRESET",
  "ENONET",
  "ENOTCONN",
  "ESHUTDOWN",
  "EOF",
  "ENOTFOUND",
  "EAI_AGAIN",
  "EAI_FAIL",
  "EAI_NODATA",
  "EAI_CANCELED",
  "UND_ERR_CONNECT_TIMEOUT",
  "UND_ERR_HEADERS_TIMEOUT",
  "UND_ERR_BODY_TIMEOUT",
  "UND_ERR_SOCKET",
  "UND_ERR_CLOSED",
  "UND_ERR_DESTROYED",
  "UND_ERR_ABORT",
  "UND_ERR_ABORTED",
  "UND_ERR_INFO",
  "UND_ERR_RES_CONTENT_LENGTH_MISMATCH",
  "UND_ERR_PRX_CONN",
  "ABORT_ERR",
  "ERR_HTTP_REQUEST_TIMEOUT",
  "ERR_HTTP2_GOAWAY_SESSION",
  "ERR_HTTP2_INVALID_SESSION",
  "ERR_HTTP2_SESSION_ERROR",
  "ERR_HTTP2_STREAM_CANCEL",
  "ERR_HTTP2_STREAM_ERROR",
  "ERR_SOCKET_CLOSED",
  "ERR_SOCKET_CLOSED_BEFORE_CONNECTION",
  "ERR_SOCKET_CONNECTION_TIMEOUT",
  "ERR_STREAM_DESTROYED",
  "ERR_STREAM_PREMATURE_CLOSE",
  "ERR_STREAM_UNABLE_TO_PIPE",
  "ERR_STREAM_WRITE_AFTER_END",
  "ERR_TLS_HANDSHAKE_TIMEOUT",
  "HPE_CLOSED_CONNECTION",
  "HPE_INVALID_EOF_STATE",
  // A compressed answer that broke off.
  "Z_BUF_ERROR",
  // This machine has no memory, files or ports left for a connection.
  "EADDRNOTAVAIL",
  "EAGAIN",
  "EAI_MEMORY",
  "EINTR",
  "EMFILE",
  "ENFILE",
  "ENOBUFS",
  "ENOMEM",
]);
/** Of this machine, for a while or until another worker takes over. */
const MACHINE: ReadonlySet<string> = new Set([
  "EBUSY",
  "EDQUOT",
  "EIO",
  "ENOSPC",
  "EROFS",
  "ETXTBSY",
  "ERR_WORKER_OUT_OF_MEMORY",
]);
/** How the sandbox's own program says the same: interrupted, I/O, again, memory, busy, files, room, quota. */
const MACHINE_WORDS = /\[Errno (4|5|11|12|16|23|24|28|122)\]|\bMemoryError\b/;
/** Of a socket's file: the service is being started again. */
const SOCKET_GONE = "ENOENT";
/** How Node and undici say the same without a code, and how an answer breaks off. */
const NETWORK_WORDS =
  /^(terminated|aborted|other side closed|socket hang up|premature close|connection closed|Unexpected end of (JSON input|form|data)|unexpected end of file|Th(e|is) operation (was aborted|timed out))/i;

/** How our own time limits say it. */
const OUR_WORDS = /\b(no answer|did not end|no progress) (in|within|for) [\d.]+ ?m?s\b/;

/** Status of an answer over HTTP, whoever gives it: too early, too often, or the server cannot at the moment. 52x: of Cloudflare; 529: overloaded. */
const HTTP: ReadonlySet<number> = new Set([
  408, 425, 429, 500, 502, 503, 504, 520, 521, 522, 523, 524, 529, 530,
]);

/** The engine's states, which another request changed or will: gone (404), in use (409). */
const ENGINE: ReadonlySet<number> = new Set([...HTTP, 404, 409]);

/** A model's servers also refuse two requests at a time (409), and flex tiers have no capacity (498). */
const MODEL: ReadonlySet<number> = new Set([...HTTP, 409, 498]);

/** Codes, types and words of a model's error in the middle of its answer, which has no status. */
const MODEL_WORDS =
  /overload|server_?error|server had an error|internal|unavailable|time(d[ _]?)?[ _-]?out|deadline_exceeded|rate_limit|too_many|resource_exhausted|aborted|cancel+ed|capacity|busy|api_error|try[ _]again|temporar|interrupted|disconnect|reset|closed|terminated|ended before/i;

/** gRPC: cancelled, as by our own time limits, deadline exceeded, resource exhausted, aborted, unavailable. */
const GRPC: ReadonlySet<number> = new Set([1, 4, 8, 10, 14]);
/** Unknown and internal, which also say that the stream broke, but only in words. */
const GRPC_UNCLEAR: ReadonlySet<number> = new Set([2, 13]);
const STREAM_WORDS =
  /RST_STREAM|GO_?AWAY|transport error|h2 protocol error|tcp connect error|broken pipe|connection (reset|closed|refused|error)|stream (closed|terminated|removed)|error reading a body/i;
/** Errors of Temporal's library for a connection, or for a worker that ends. */
const TEMPORAL_NAMES: ReadonlySet<string> = new Set([
  "TransportError",
  "ShutdownError",
  "NativePromiseDroppedError",
  "WorkflowUpdateRPCTimeoutOrCancelledError",
]);

/**
 * SQLSTATE: a connection (08), a lost race (40, and two writers of one key, 23505 and 23P01), a full disk or too many connections (53), an
 * object or lock in use (55006, 55P03), a shutdown or a time-out (57), a damaged disk (58), a server that only reads after a failover
 * (25006), a transaction that ended meanwhile (25P03), a fault of the server itself (XX). A wrong password (28) and a missing database (3D) pass too: an operator changes
 * the one or restores the other while sessions run, and a start names both at once.
 */
const POSTGRES = /^(08|28|3D|40|53|57|58|XX|23505|23P01|25006|25P0[34]|55006|55P03)/;

/** Kinds of trouble with Git: the network or the server, and this worker's own memory, disk and copies, which another worker does not share. */
const GIT: ReadonlySet<string> = new Set(["away", "memory", "disk", "ours"]);

/** Codes of the MCP library for a connection, JSON-RPC's own code for a server's fault, and otherwise HTTP's status. */
const MCP: ReadonlySet<string | number> = new Set([
  "NOT_CONNECTED",
  "REQUEST_TIMEOUT",
  "CONNECTION_CLOSED",
  "SEND_FAILED",
  -32603,
]);

export const passes = {
  http: (status: number): boolean => HTTP.has(status),
  engine: (status: number): boolean => ENGINE.has(status),
  model: (status: number): boolean => MODEL.has(status),
  modelWords: (text: string): boolean => MODEL_WORDS.test(text),
  grpc: (code: number, details = ""): boolean =>
    GRPC.has(code) || (GRPC_UNCLEAR.has(code) && STREAM_WORDS.test(details)),
  postgres: (sqlState: string): boolean => POSTGRES.test(sqlState),
  git: (kind: string): boolean => GIT.has(kind),
  mcp: (code: string | number): boolean => MCP.has(code) || (typeof code === "number" && HTTP.has(code)),
} as const;

/** Whether a connection failed in a way that passes, by the error's own code or words, or those of a cause. */
export function isNetworkTrouble(error: unknown, { ofSocket = false } = {}): boolean {
  for (let inner = error, depth = 0; inner instanceof Error && depth < 8; inner = inner.cause, depth += 1) {
    const code = "code" in inner ? String(inner.code) : "";
    if (NETWORK.has(code) || (ofSocket && code === SOCKET_GONE)) return true;
    if (inner.name === "TimeoutError" || inner.name === "AbortError") return true;
    if (NETWORK_WORDS.test(inner.message) || OUR_WORDS.test(inner.message)) return true;
    if (inner instanceof AggregateError && inner.errors.some((one) => isNetworkTrouble(one, { ofSocket })))
      return true;
  }
  return false;
}

/** The same for a code alone. */
export const isNetworkCode = (code: string): boolean => NETWORK.has(code);

/**
 * Whether an error passes that no boundary has named: of a connection or a time limit, of this machine, with the status of an answer, or if
 * its own class says so. Anything else is a mistake, ours or a library's, which the next attempt would repeat.
 */
export function passesUnnamed(error: unknown): boolean {
  for (let inner = error, depth = 0; inner instanceof Error && depth < 8; inner = inner.cause, depth += 1) {
    const known: UnnamedError = inner;
    if (typeof known.isPassing === "boolean") return known.isPassing;
    if (typeof known.statusCode === "number") return passes.engine(known.statusCode);
    // Only gRPC's errors have both.
    if (typeof known.code === "number" && typeof known.details === "string")
      return passes.grpc(known.code, `${inner.message} ${known.details}`);
    if (MACHINE.has(String(known.code)) || MACHINE_WORDS.test(inner.message)) return true;
    if (TEMPORAL_NAMES.has(inner.name)) return true;
  }
  return isNetworkTrouble(error);
}

interface UnnamedError extends Error {
  readonly code?: unknown;
  readonly details?: unknown;
  readonly isPassing?: unknown;
  readonly statusCode?: unknown;
}
