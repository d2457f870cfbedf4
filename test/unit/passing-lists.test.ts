/**
 * The table of what passes, held against what the libraries in use can throw: each list is read from the library, and each of its entries
 * either passes or is named here as final. A new version's new error fails this test until someone has decided.
 */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { getSystemErrorMap } from "node:util";
import { ProtocolError, ProtocolErrorCode, SdkError, SdkErrorCode } from "@modelcontextprotocol/client";
import { expect, it } from "vitest";
import { passes, passesUnnamed } from "../../activities/contract/errors.ts";
import { isPassing as mcpPasses } from "../../activities/mcp/failures.ts";
import { databaseErrorOf } from "../../activities/store/database-error.ts";

const packages = fileURLToPath(new URL("../../node_modules", import.meta.url));
/** The texts of a package's own files. */
function sources(name: string, folder: string): string {
  const root = join(packages, name, folder);
  return readdirSync(root, { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(".js") && !/test|native|node_modules/.test(file))
    .map((file) => readFileSync(join(root, file), "utf8"))
    .join("\n");
}
const found = (text: string, pattern: RegExp) =>
  [...new Set([...text.matchAll(pattern)].map(([, entry = ""]) => entry))].toSorted();
/** Messages of `new Error`, as far as they are written out. */
const messages = (text: string) => found(text, /new Error\(\s*['"`]([^'"`$]{4,})/g);
const withCode = (code: unknown) => Object.assign(new Error("zq"), { code });

interface List {
  readonly of: string;
  readonly entries: readonly string[];
  readonly passes: (entry: string) => boolean;
  readonly passing: readonly string[];
  /** Undefined for a list that each release of Node makes longer: whatever else is in it is final. */
  readonly final: readonly string[] | undefined;
}

const LISTS: readonly List[] = [
  {
    of: "undici's codes",
    entries: found(sources("undici", "lib/core"), /this\.code = '([A-Z_]+)'/g),
    passes: (code) => passesUnnamed(new TypeError("fetch failed", { cause: withCode(code) })),
    passing: [
      "UND_ERR_ABORT",
      "UND_ERR_ABORTED",
      "UND_ERR_BODY_TIMEOUT",
      "UND_ERR_CLOSED",
      "UND_ERR_CONNECT_TIMEOUT",
      "UND_ERR_DESTROYED",
      "UND_ERR_HEADERS_TIMEOUT",
      "UND_ERR_INFO",
      "UND_ERR_PRX_CONN",
      "UND_ERR_RES_CONTENT_LENGTH_MISMATCH",
      "UND_ERR_SOCKET",
    ],
    final: [
      "ERR_WEBASSEMBLY_NOT_SUPPORTED",
      "UND_ERR",
      "UND_ERR_BPL_MISSING_UPSTREAM",
      "UND_ERR_HEADERS_OVERFLOW",
      "UND_ERR_INVALID_ARG",
      "UND_ERR_INVALID_RETURN_VALUE",
      "UND_ERR_MAX_ORIGINS_REACHED",
      "UND_ERR_NOT_SUPPORTED",
      "UND_ERR_PRX_TLS",
      "UND_ERR_REDIRECT_MAX",
      "UND_ERR_REQ_CONTENT_LENGTH_MISMATCH",
      "UND_ERR_REQ_RETRY",
      "UND_ERR_RESPONSE",
      "UND_ERR_RES_EXCEEDED_MAX_SIZE",
      "UND_ERR_WS_MESSAGE_SIZE_EXCEEDED",
    ],
  },
  {
    of: "the system's codes",
    entries: [...getSystemErrorMap().values()].map(([code]) => code).toSorted(),
    passes: (code) => passesUnnamed(withCode(code)),
    passing: [
      "EADDRNOTAVAIL",
      "EAGAIN",
      "EAI_AGAIN",
      "EAI_CANCELED",
      "EAI_FAIL",
      "EAI_MEMORY",
      "EAI_NODATA",
      "EBUSY",
      "ECONNABORTED",
      "ECONNREFUSED",
      "ECONNRESET",
      "EHOSTDOWN",
      "EHOSTUNREACH",
      "EINTR",
      "EIO",
      "EMFILE",
      "ENETDOWN",
      "ENETUNREACH",
      "ENFILE",
      "ENOBUFS",
      "ENOMEM",
      "ENONET",
      "ENOSPC",
      "ENOTCONN",
      "EOF",
      "EPIPE",
      "EROFS",
      "ESHUTDOWN",
      "ETIMEDOUT",
      "ETXTBSY",
    ],
    final: undefined,
  },
  {
    of: "the driver of Postgres",
    entries: messages(`${sources("pg", "lib")}\n${sources("pg-pool", ".")}`),
    passes: (message) =>
      databaseErrorOf(new Error("Failed query: select 1", { cause: new Error(message) }))?.final === false,
    passing: [
      "Cannot use a pool after calling end on the pool",
      "Client has encountered a connection error and is not queryable",
      "Client was closed and is not queryable",
      "Connection terminated",
      "Connection terminated due to connection timeout",
      "Connection terminated unexpectedly",
      "Query read timeout",
      "Received unexpected commandComplete message from backend.",
      "Received unexpected copyData message from backend.",
      "Received unexpected copyInResponse message from backend.",
      "Received unexpected dataRow message from backend.",
      "Received unexpected emptyQuery message from backend.",
      "Received unexpected parseComplete message from backend.",
      "Received unexpected portalSuspended message from backend.",
      "Received unexpected rowDescription message from backend.",
      "There was an error establishing an SSL connection",
      "timeout exceeded when trying to connect",
      "timeout expired",
    ],
    final: [
      "A query must have either text or a name. Supplying neither is unsupported.",
      "Buffer lengths must match",
      "Buffers cannot be empty",
      "Called end on pool more than once",
      "Client has already been connected. You cannot reuse a client.",
      "Invalid sslnegotiation value: ",
      "Passing a function as the first parameter to pool.query is not supported",
      "Prepared statements must be unique - ",
      "Query values must be an array",
      "Release called on client which has already been released to the pool.",
      "SASL channel binding: ",
      "SASL: Invalid attribute pair entry",
      "SASL: Last message was not SASLInitialResponse",
      "SASL: Last message was not SASLResponse",
      "SASL: Mechanism SCRAM-SHA-256-PLUS requires a certificate",
      "SASL: Only mechanism(s) ",
      "SASL: SCRAM-SERVER-FINAL-MESSAGE: server returned error: ",
      "SASL: SCRAM-SERVER-FINAL-MESSAGE: server signature does not match",
      "SASL: SCRAM-SERVER-FINAL-MESSAGE: server signature is missing",
      "SASL: SCRAM-SERVER-FINAL-MESSAGE: server signature must be base64",
      "SASL: SCRAM-SERVER-FINAL-MESSAGE: serverData must be a string",
      "SASL: SCRAM-SERVER-FIRST-MESSAGE: client password must be a non-empty string",
      "SASL: SCRAM-SERVER-FIRST-MESSAGE: client password must be a string",
      "SASL: SCRAM-SERVER-FIRST-MESSAGE: invalid iteration count",
      "SASL: SCRAM-SERVER-FIRST-MESSAGE: iteration count ",
      "SASL: SCRAM-SERVER-FIRST-MESSAGE: iteration missing",
      "SASL: SCRAM-SERVER-FIRST-MESSAGE: nonce missing",
      "SASL: SCRAM-SERVER-FIRST-MESSAGE: nonce must only contain printable characters",
      "SASL: SCRAM-SERVER-FIRST-MESSAGE: salt missing",
      "SASL: SCRAM-SERVER-FIRST-MESSAGE: salt must be base64",
      "SASL: SCRAM-SERVER-FIRST-MESSAGE: server nonce does not start with client nonce",
      "SASL: SCRAM-SERVER-FIRST-MESSAGE: server nonce is too short",
      "SASL: SCRAM-SERVER-FIRST-MESSAGE: serverData must be a string",
      "The server does not support SSL connections",
      "circular reference detected while preparing ",
      "sslnegotiation=direct requires SSL to be enabled",
      "unexpected condition",
    ],
  },
  {
    of: "the engine's client",
    entries: messages(`${sources("docker-modem", "lib")}\n${sources("dockerode", "lib")}`),
    passes: (message) => passesUnnamed(new Error(message)),
    passing: [],
    final: [
      "(HTTP code ",
      "DOCKER_HOST env variable should be something like tcp://localhost:1234",
      "Max redirects exceeded. To allow more redirects, pass options.maxRedirects property.",
    ],
  },
  {
    of: "gRPC's statuses",
    entries: found(sources("@grpc/grpc-js", "build/src"), /Status\[Status\["\w+"\] = (\d+)\]/g),
    passes: (code) => passes.grpc(Number(code)),
    passing: ["1", "10", "14", "4", "8"],
    final: ["0", "11", "12", "13", "15", "16", "2", "3", "5", "6", "7", "9"],
  },
  {
    of: "the MCP library's codes",
    entries: Object.values(SdkErrorCode).toSorted(),
    passes: (code) => mcpPasses(new SdkError(code as SdkErrorCode, "zq")),
    passing: ["CONNECTION_CLOSED", "NOT_CONNECTED", "REQUEST_TIMEOUT", "SEND_FAILED"],
    final: [
      "ALREADY_CONNECTED",
      "CAPABILITY_NOT_SUPPORTED",
      "CLIENT_HTTP_AUTHENTICATION",
      "CLIENT_HTTP_FAILED_TO_OPEN_STREAM",
      "CLIENT_HTTP_FAILED_TO_TERMINATE_SESSION",
      "CLIENT_HTTP_FORBIDDEN",
      "CLIENT_HTTP_NOT_IMPLEMENTED",
      "CLIENT_HTTP_UNEXPECTED_CONTENT",
      "ERA_NEGOTIATION_FAILED",
      "INPUT_REQUIRED_ROUNDS_EXCEEDED",
      "INVALID_RESULT",
      "LIST_PAGINATION_EXCEEDED",
      "METHOD_NOT_SUPPORTED_BY_PROTOCOL_VERSION",
      "NOT_INITIALIZED",
      "UNSUPPORTED_RESULT_TYPE",
    ],
  },
  {
    of: "JSON-RPC's codes",
    entries: Object.values(ProtocolErrorCode)
      .filter((code) => typeof code === "number")
      .map(String)
      .toSorted(),
    passes: (code) => mcpPasses(new ProtocolError(Number(code), "zq")),
    passing: ["-32603"],
    final: ["-32002", "-32021", "-32022", "-32042", "-32600", "-32601", "-32602", "-32700"],
  },
];

it.each(LISTS)("$of", ({ entries, passes, passing, final }) => {
  const expected = final === undefined ? passing.filter((entry) => entries.includes(entry)) : passing;
  expect(entries.filter(passes)).toEqual(expected);
  expect(expected.length + entries.length).toBeGreaterThan(2);
  if (final !== undefined) expect(entries.filter((entry) => !passes(entry))).toEqual(final);
});
