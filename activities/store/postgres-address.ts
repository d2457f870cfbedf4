/**
 * DATABASE_URL as libpq reads it, for the driver, which reads some of it otherwise: the grammar (a `#` in a password is a
 * character), the files of certificates, and what `sslmode` means. Where the driver cannot do what libpq would, it is refused.
 */
import { readFileSync } from "node:fs";
import type pg from "pg";

type Environment = Readonly<Record<string, string | undefined>>;

export interface PostgresAddress {
  /** For a client or a pool of the driver. */
  readonly config: pg.ClientConfig;
  /** `postgres://host:port/database`, without user and password. */
  readonly shown: string;
  /** From `connect_timeout`, in ms; undefined if it is not given. */
  readonly connectTimeoutMs: number | undefined;
  /** For people: what the address asks for and is not done. */
  readonly notes: readonly string[];
}

/** An address that cannot be used. The message says what is wrong and the form that works, and holds no password. */
export class PostgresAddressWrong extends Error {
  override readonly name = "PostgresAddressWrong";
}

const FORM = "postgres://USER:PASSWORD@HOST:PORT/DATABASE";

/** @throws PostgresAddressWrong */
export function readPostgresAddress(url: string, environment: Environment = process.env): PostgresAddress {
  // The driver's own forms of a socket.
  if (/^(socket:|\/)/.test(url))
    return {
      config: { connectionString: url },
      shown: "a socket of this machine",
      connectTimeoutMs: undefined,
      notes: [],
    };
  // A file with the address, as of a secret, ends with a line end.
  const { user, password, host, port, database, pairs } = parts(url.trim());
  const parameters = new Map(pairs);
  const setting = (name: string) => parameters.get(name) || environment[VARIABLES[name] ?? ""] || undefined;
  const called: Called = (name) => (parameters.get(name) ? name : (VARIABLES[name] ?? name));
  const notes = [...parameters.keys()]
    .filter((name) => !KNOWN.has(name))
    .map((name) => `${name} is not read`);
  if (setting("channel_binding") === "require")
    notes.push(
      "channel_binding=require: channel binding is used where the server offers it, but not required",
    );
  refuseUnmet(setting, called);
  const seconds = Number(setting("connect_timeout") ?? 0);
  if (!Number.isInteger(seconds))
    throw new PostgresAddressWrong(`${called("connect_timeout")} is no whole number of seconds`);
  if (environment["PGSERVICE"] && !parameters.has("service"))
    notes.push("PGSERVICE is not read: only DATABASE_URL says where the database is");
  const ssl = tlsOf(setting, called);
  return {
    config: {
      ...defined({
        user: parameters.get("user") || user,
        password: parameters.get("password") || password,
        host: parameters.get("hostaddr") || parameters.get("host") || host,
        port: numberOf(parameters.get("port") || port),
        database: parameters.get("dbname") || database,
        options: parameters.get("options"),
        fallback_application_name: parameters.get("application_name"),
        client_encoding: parameters.get("client_encoding"),
      }),
      ssl,
      enableChannelBinding:
        setting("channel_binding") === undefined || setting("channel_binding") === "disable"
          ? undefined
          : true,
      sslnegotiation: parameters.get("sslnegotiation") === "direct" ? "direct" : undefined,
    },
    shown: shownPlace(url, {
      host: parameters.get("host") || host || environment["PGHOST"],
      port: parameters.get("port") || port || environment["PGPORT"],
      database: parameters.get("dbname") || database || environment["PGDATABASE"],
    }),
    // libpq: 0 and negative numbers mean no limit, and 1 counts as 2.
    connectTimeoutMs: seconds > 0 ? Math.max(2, seconds) * 1_000 : undefined,
    notes,
  };
}

/** What changes which database is asked, or how well it is protected, and cannot be done. @throws PostgresAddressWrong */
function refuseUnmet(setting: Given, called: Called): void {
  if (["standby", "read-only", "prefer-standby"].includes(setting("target_session_attrs") ?? ""))
    throw new PostgresAddressWrong(
      `${called("target_session_attrs")} must be read-write or any: Longhaul writes`,
    );
  const service = setting("service");
  if (service !== undefined)
    throw new PostgresAddressWrong(
      `service=${service} names an entry of a file that is not read: write host, port, user and database in the address`,
    );
  if (setting("gssencmode") === "require")
    throw new PostgresAddressWrong(
      "gssencmode=require cannot be done: the driver has no GSSAPI. Use sslmode=verify-full",
    );
}

/** Of the parameters that have a variable of libpq's. */
const VARIABLES: Readonly<Record<string, string>> = {
  sslmode: "PGSSLMODE",
  sslrootcert: "PGSSLROOTCERT",
  sslcert: "PGSSLCERT",
  sslkey: "PGSSLKEY",
  connect_timeout: "PGCONNECT_TIMEOUT",
  channel_binding: "PGCHANNELBINDING",
  target_session_attrs: "PGTARGETSESSIONATTRS",
};
const KNOWN = new Set([
  ...Object.keys(VARIABLES),
  "user",
  "password",
  "host",
  "hostaddr",
  "port",
  "dbname",
  "options",
  "application_name",
  "client_encoding",
  "ssl",
  "sslpassword",
  "sslnegotiation",
  "keepalives",
]);

interface Parts {
  readonly user: string | undefined;
  readonly password: string | undefined;
  readonly host: string | undefined;
  readonly port: string | undefined;
  readonly database: string | undefined;
  readonly pairs: readonly (readonly [key: string, value: string])[];
}

/** Source: libpq, conninfo_uri_parse_options: the credentials end at the first `@`, if that comes before a `/`. */
function parts(url: string): Parts {
  const [, credentials, authority = "", database, query] =
    /^postgres(?:ql)?:\/\/(?:([^@/]*)@)?([^/?]*)(?:\/([^?]*))?(?:\?(.*))?$/s.exec(url) ??
    refuse("is no address of a Postgres server");
  if (database?.includes("@") === true || authority.includes("@"))
    refuse(
      "has a user or password with a character that ends it there; write @ as %40, / as %2F and : as %3A",
    );
  if ([authority, parameter(query, "host")].some((hosts) => hosts.includes(",")))
    refuse("names several hosts; name one, such as a DNS name or a proxy that follows the primary");
  const [, user, password] = /^([^:]*)(?::(.*))?$/s.exec(credentials ?? "") ?? [];
  const [, bracketed, name, port] =
    /^(?:\[([^\]]*)\]|([^:]*))(?::(\d*))?$/.exec(authority) ??
    refuse("names no host and port; an IPv6 address is written in brackets");
  const pairs = (query ?? "").split("&").filter((pair) => pair !== "");
  return {
    user: decoded(user),
    password: decoded(password),
    host: bracketed ?? decoded(name),
    port: port || undefined,
    database: decoded(database),
    pairs: pairs.map((pair) => {
      const [key = "", ...value] = pair.split("=");
      return [decoded(key) ?? "", decoded(value.join("=")) ?? ""];
    }),
  };
}

/** As it stands. */
const parameter = (query = "", name: string): string =>
  new RegExp(`(?:^|&)${name}=([^&]*)`).exec(query)?.[1] ?? "";

function refuse(what: string): never {
  throw new PostgresAddressWrong(`it ${what}. Expected ${FORM}`);
}

/** @throws PostgresAddressWrong for a `%` that begins no code */
function decoded(text: string | undefined): string | undefined {
  if (text === undefined || text === "") return undefined;
  try {
    return decodeURIComponent(text);
  } catch {
    return refuse("has a % that begins no code; write % as %25");
  }
}

function numberOf(port: string | undefined): number | undefined {
  if (port === undefined) return undefined;
  const value = Number(port);
  return Number.isInteger(value) && value > 0 && value < 65_536
    ? value
    : refuse("has a port that is no port");
}

type Given = (name: string) => string | undefined;
/** The name under which a parameter was found: its own in the address, or that of libpq's variable. */
type Called = (name: string) => string;

/**
 * Stricter than libpq in one point: `require` verifies the certificate in full, as the driver does; `no-verify`, the driver's word, only encrypts.
 * @returns undefined: as the driver decides, without TLS
 */
function tlsOf(setting: Given, called: Called): pg.ClientConfig["ssl"] {
  const mode =
    setting("sslmode") ??
    (setting("ssl") === undefined || OFF.has(setting("ssl") ?? "") ? undefined : "require");
  if (mode === undefined) return setting("ssl") === undefined ? undefined : false;
  if (mode === "disable") return false;
  if (mode === "prefer" || mode === "allow")
    throw new PostgresAddressWrong(
      `${called("sslmode")}=${mode} cannot be done: the driver decides before it connects. Use sslmode=disable, sslmode=no-verify (encrypted, any certificate) or sslmode=verify-full`,
    );
  if (!MODES.has(mode))
    throw new PostgresAddressWrong(
      `there is no ${called("sslmode")}=${mode}; use disable, no-verify, require, verify-ca or verify-full`,
    );
  const root = setting("sslrootcert");
  const [ca, cert, key] = [
    root === "system" ? undefined : file(called("sslrootcert"), root),
    file(called("sslcert"), setting("sslcert")),
    file(called("sslkey"), setting("sslkey")),
  ];
  return {
    ...defined({ ca, cert, key, passphrase: setting("sslpassword") }),
    ...(mode === "no-verify" ? { rejectUnauthorized: false } : {}),
    // libpq: with a certificate authority of one's own, these two do not compare the host's name.
    ...(ca !== undefined && (mode === "require" || mode === "verify-ca")
      ? { checkServerIdentity: () => undefined }
      : {}),
  };
}

const OFF = new Set(["0", "false", "no", "off"]);
const MODES = new Set(["no-verify", "require", "verify-ca", "verify-full"]);

function file(name: string, path: string | undefined): string | undefined {
  if (path === undefined) return undefined;
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    const code = error instanceof Error && "code" in error ? ` (${String(error.code)})` : "";
    throw new PostgresAddressWrong(`${name}=${path} cannot be read${code}`);
  }
}

function defined<T extends object>(values: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as {
    [K in keyof T]?: Exclude<T[K], undefined>;
  };
}

/**
 * The same database for another role: complete, so that no variable of its reader decides.
 * @throws PostgresAddressWrong also for the driver's own forms of a socket
 */
export function addressForRole(
  url: string,
  { role, password }: { readonly role: string; readonly password: string },
  environment: Environment = process.env,
): string {
  const { config } = readPostgresAddress(url, environment);
  if (config.connectionString !== undefined)
    throw new PostgresAddressWrong(
      "it is a socket in a form without a user; write postgres:///DATABASE?host=FOLDER",
    );
  const { PGHOST, PGPORT, PGDATABASE, PGUSER } = environment;
  const { user, database = PGDATABASE || user || PGUSER } = config;
  const host = config.host ?? (PGHOST || "localhost");
  const port = config.port ?? PGPORT;
  const isSocket = host.startsWith("/");
  const otherPairs = parts(url.trim()).pairs.filter(([key]) => !PLACED.has(key));
  const all = isSocket ? [["host", host] as const, ...otherPairs] : otherPairs;
  const query = all.map((pair) => pair.map(encodeURIComponent).join("=")).join("&");
  const credentials = `${encodeURIComponent(role)}:${encodeURIComponent(password)}`;
  const at = `${isSocket ? "" : bracketed(host)}${port ? `:${port}` : ""}`;
  const search = query === "" ? "" : `?${query}`;
  return `postgres://${credentials}@${at}/${encodeURIComponent(database ?? "")}${search}`;
}

/** What is connected to, wherever it was said: a wrong variable of libpq's must be seen. A socket's folder is a parameter. */
function shownPlace(
  url: string,
  {
    host = "localhost",
    port,
    database = "",
  }: Readonly<Record<"host" | "port" | "database", string | undefined>>,
): string {
  const at = `${host.startsWith("/") ? "" : bracketed(host)}${port ? `:${port}` : ""}`;
  return `${url.trim().split("://", 1)[0]}://${at}/${database}${host.startsWith("/") ? `?host=${host}` : ""}`;
}

const bracketed = (host: string): string => (host.includes(":") ? `[${host}]` : encodeURIComponent(host));

/** Parameters that say the same as the parts before them. */
const PLACED = new Set(["user", "password", "host", "hostaddr", "port", "dbname"]);

/** Where the server listens. */
export function toListenAddress({
  config,
}: PostgresAddress): { host: string; port: number } | { path: string } | undefined {
  const { host = process.env["PGHOST"] || "localhost", port = Number(process.env["PGPORT"] || 5432) } =
    config;
  if (config.connectionString !== undefined) return undefined;
  return host.startsWith("/") ? { path: `${host}/.s.PGSQL.${port}` } : { host, port };
}
