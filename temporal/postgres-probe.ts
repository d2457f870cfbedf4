/**
 * Whether Postgres answers and a worker could keep its tables there, whether a pooler stands in front of it that may give each
 * transaction another connection, and why it could not be used: silent, refusing, or unknown to this machine.
 */
import pg from "pg";
import { lookAtTables, EarlierTables, SchemaUnusable } from "../activities/store/migrate.ts";
import {
  toListenAddress,
  readPostgresAddress,
  PostgresAddressWrong,
} from "../activities/store/postgres-address.ts";
import { patiently, PROBE_MS, within, type Patience } from "./patience.ts";
import { withoutPassword } from "./probe.ts";
import { ServiceMissing, plainReason, WrongSettings } from "./service-missing.ts";
import { innermostReason } from "../activities/contract/errors.ts";

/**
 * @param patience default: as a check that is to end within 10 s
 * @returns such as `PostgreSQL 18.4`
 * @throws ServiceMissing, also for a pooler in between that we cannot work with; WrongSettings for an address that is none
 */
export const probePostgres = (url: string, patience: Patience = within(PROBE_MS)): Promise<string> =>
  askPostgres(url, patience, async (client, address, timeoutMs) => {
    const { rows } = await client.query<PostgresFacts>(
      `select current_setting('server_version') as version, current_setting('server_version_num')::int as number,
        current_setting('server_encoding') as encoding`,
    );
    const unfit = unfitPostgres(rows[0] ?? {}, address);
    if (unfit !== undefined) throw unfit;
    await refusePooler(client, url, address, timeoutMs);
    return `PostgreSQL ${rows[0]?.version ?? "?"}`;
  });

/**
 * Whether a worker could bring its tables up to date. Changes nothing.
 * @returns such as `in the schema public, of this version`
 * @throws ServiceMissing that names the right that is missing; WrongSettings
 */
export const probeTables = (url: string): Promise<string> =>
  askPostgres(url, within(PROBE_MS), async (client) => {
    try {
      const { schema, lacking } = await lookAtTables(client);
      const are = lacking === 0 ? "of this version" : "brought up to date by the next worker";
      return `in the schema ${schema}, ${are}`;
    } catch (error) {
      throw mayNotMigrate(error, url) ?? error;
    }
  });

async function askPostgres(
  url: string,
  patience: Patience,
  ask: (client: pg.Client, address: string, timeoutMs: number) => Promise<string>,
): Promise<string> {
  const target = { address: withoutPassword(url), fix: POSTGRES_FIX, isNamed: true };
  try {
    const address = readPostgresAddress(url);
    const connectMs = Math.min(address.connectTimeoutMs ?? patience.connectMs, patience.connectMs);
    return await patiently(
      "Postgres",
      toListenAddress(address),
      { ...patience, connectMs },
      async (timeoutMs) => {
        const client = new pg.Client({
          ...address.config,
          connectionTimeoutMillis: timeoutMs,
          query_timeout: timeoutMs,
        });
        client.on("error", () => {});
        try {
          await client.connect();
          return await ask(client, target.address, timeoutMs);
        } finally {
          await client.end().catch(() => {});
        }
      },
    );
  } catch (error) {
    throw postgresMissing(error, target);
  }
}

interface PostgresFacts {
  readonly version: string;
  readonly number: number;
  readonly encoding: string;
}

/** Of Postgres 15: a view reads with the rights of whoever asks (security_invoker), which roles of persons need. */
const OLDEST_POSTGRES = 150_000;

/** What no tables of ours can be in. @param address without a password */
export function unfitPostgres(
  { version = "?", number = 0, encoding = "?" }: Partial<PostgresFacts>,
  address: string,
): ServiceMissing | undefined {
  if (number < OLDEST_POSTGRES)
    return new ServiceMissing({
      service: "Postgres",
      address,
      problem: `is version ${version} at ${address}, and 15 or newer is needed`,
      fix: "Upgrade it, or name another server in DATABASE_URL.",
    });
  return encoding === "UTF8" ? undefined : otherEncoding(address, encoding);
}

const otherEncoding = (address: string, encoding: string): ServiceMissing =>
  new ServiceMissing({
    service: "Postgres",
    address,
    problem: `has a database with the encoding ${encoding} at ${address}, and texts need UTF8`,
    fix: "Create one for it: CREATE DATABASE longhaul ENCODING 'UTF8' TEMPLATE template0; and name it in DATABASE_URL.",
  });

const POSTGRES_FIX = "Correct DATABASE_URL, or unset it and `npm start` brings up its own.";

/** A client's identity. Postgres reports its backend's process; a pooler reports its own number. */
type Known = Pick<pg.ClientBase, "query"> & { readonly processID?: number | null };

/** How often two clients are compared. Chosen by judgement: a pooler hardly gives one the same connection so often by chance. */
const ROUNDS = 5;

/** @param address of the server, without a password. @throws ServiceMissing if a pooler lends its connections for a transaction only */
export async function refusePooler(
  client: Known,
  url: string,
  address: string,
  timeoutMs: number,
): Promise<void> {
  if ((await backendOf(client)) === client.processID) return;
  const other = new pg.Client({
    ...readPostgresAddress(url).config,
    connectionTimeoutMillis: timeoutMs,
    query_timeout: timeoutMs,
  });
  other.on("error", () => {});
  try {
    await other.connect();
    if (await shareBackends(client, other)) throw pooled(address);
  } finally {
    await other.end().catch(() => {});
  }
}

/** Whether two clients are seen on one connection, or one of them on two. */
async function shareBackends(client: Known, other: Known): Promise<boolean> {
  const backend = await backendOf(client);
  for (let round = 0; round < ROUNDS; round += 1) {
    await other.query("begin");
    try {
      // While a client's transaction is open, no other client gets its connection.
      if ((await backendOf(other)) === backend || (await backendOf(client)) !== backend) return true;
    } finally {
      await other.query("rollback");
    }
  }
  return false;
}

async function backendOf(client: Known): Promise<number | undefined> {
  const { rows } = await client.query<{ pid: number }>("select pg_backend_pid() as pid");
  return rows[0]?.pid;
}

const pooled = (address: string, cause?: unknown) =>
  new ServiceMissing({
    service: "Postgres",
    address,
    problem: `is behind a pooler in transaction mode at ${address}`,
    reason:
      "LISTEN, locks and settings of a connection do not outlive a transaction there, and Longhaul needs them",
    fix: "Set DATABASE_URL to the server's own address, or to a pool in session mode.",
    cause,
  });

/** @returns the advice for a pooler that refuses a connection because of its options; undefined for any other error */
function poolerRefusal(error: unknown, address: string): ServiceMissing | undefined {
  if (!(error instanceof Error) || !/unsupported startup parameter/.test(error.message)) return undefined;
  return new ServiceMissing({
    service: "Postgres",
    address,
    problem: `is behind a pooler that refuses our connections at ${address}`,
    reason: error.message,
    fix: "Leave out of DATABASE_URL what the reason names, or let the pooler accept it (PgBouncer: ignore_startup_parameters). Settings of the role do the same: ALTER ROLE … SET.",
    cause: error,
  });
}

interface Trouble {
  readonly problem: string;
  readonly fix?: string;
}

/** By the SQLSTATE's class or code. Source: Postgres' appendix of error codes. */
const REFUSALS: readonly (readonly [code: RegExp, Trouble])[] = [
  [
    /^28/,
    { problem: "refuses this user or password", fix: "Correct the user and password in DATABASE_URL." },
  ],
  [
    /^3D000$/,
    { problem: "has no such database", fix: "Create it, or correct the database in DATABASE_URL." },
  ],
  [
    /^53300$/,
    { problem: "takes no more connections", fix: "Raise max_connections, or lower DATABASE_CONNECTIONS." },
  ],
  [/^57P03$/, { problem: "is starting up or shutting down", fix: "Try again in a few seconds." }],
  [/^[0-9A-Z]{5}$/, { problem: "answers with a refusal" }],
];

/** How Node and the driver say that the certificate is not trusted, or that the server speaks no TLS. */
const TLS: readonly (readonly [pattern: RegExp, Trouble])[] = [
  [
    /does not support SSL/,
    {
      problem: "does not speak TLS",
      fix: "Use sslmode=disable in DATABASE_URL, or turn TLS on at the server.",
    },
  ],
  [
    /CERT|SELF_SIGNED|UNABLE_TO_|ERR_TLS|self-signed|certificate/,
    {
      problem: "has a certificate that this machine does not trust",
      fix: "Add sslrootcert=FILE to DATABASE_URL, with its certificate authority; or sslmode=no-verify, which encrypts and checks nothing.",
    },
  ],
];

export interface Asked {
  /** Where it was looked for; no password. */
  readonly address: string;
  /** What to do if nothing else is known. */
  readonly fix: string;
  /** Whether DATABASE_URL names the server: otherwise it is one that happens to listen at our usual port. */
  readonly isNamed: boolean;
}

/** @returns WrongSettings for an address that cannot be used: nothing was asked */
export function postgresMissing(error: unknown, { address, fix, isNamed }: Asked): Error {
  if (error instanceof ServiceMissing || error instanceof WrongSettings) return error;
  if (error instanceof EarlierTables) return earlierTables(error, address);
  if (error instanceof PostgresAddressWrong)
    return new WrongSettings(`DATABASE_URL cannot be used: ${error.message}.`);
  const refusal = poolerRefusal(error, address);
  if (refusal !== undefined) return refusal;
  const trouble = troubleOf(error);
  const common = { service: "Postgres", address, reason: plainReason(error), cause: error };
  if (trouble === undefined) return new ServiceMissing({ ...common, fix });
  const problem = `${trouble.problem} at ${address}`;
  if (!isNamed)
    return new ServiceMissing({
      ...common,
      problem,
      fix: "It is not this checkout's own server: set DATABASE_URL to use it, or end it and bring up one of your own: longhaul up --detach",
    });
  return new ServiceMissing({ ...common, problem, fix: trouble.fix ?? fix });
}

function troubleOf(error: unknown): Trouble | undefined {
  const reason = innermostReason(error);
  // The driver's own words for a server that wants a password where none is known.
  if (reason.startsWith("SASL")) return REFUSALS[0]?.[1];
  const codes: string[] = [];
  for (let inner = error; inner instanceof Error; inner = inner.cause)
    if ("code" in inner && typeof inner.code === "string") codes.push(inner.code);
  const tls = TLS.find(([pattern]) => pattern.test(reason) || codes.some((code) => pattern.test(code)));
  if (tls !== undefined) return tls[1];
  // Codes of the system, such as EPIPE, have the same form as five characters of SQLSTATE have.
  const state = codes.find((code) => /^[0-9A-Z]{5}$/.test(code) && !/^E[A-Z]+$/.test(code));
  return state === undefined ? undefined : REFUSALS.find(([code]) => code.test(state))?.[1];
}

/** SQLSTATE: insufficient privilege. */
const NOT_ALLOWED = "42501";

/**
 * A schema in which the role of the worker or client cannot bring the tables up to date, or that has tables of an earlier build;
 * undefined for any other error.
 */
export function mayNotMigrate(error: unknown, url: string): ServiceMissing | undefined {
  if (error instanceof EarlierTables) return earlierTables(error, readPostgresAddress(url).shown);
  const isSchema = error instanceof SchemaUnusable;
  if (!isSchema && (!(error instanceof Error) || !("code" in error) || error.code !== NOT_ALLOWED))
    return undefined;
  const { shown } = readPostgresAddress(url);
  return new ServiceMissing({
    service: "Postgres",
    address: shown,
    problem: `does not let this role bring the tables up to date at ${shown}`,
    reason: innermostReason(error),
    fix: isSchema
      ? error.fix
      : "As a superuser, or as the owner of what the reason names: ALTER TABLE NAME OWNER TO the worker's role; the same for functions and views.",
    cause: error,
  });
}

function earlierTables(cause: EarlierTables, address: string): ServiceMissing {
  return new ServiceMissing({
    service: "Postgres",
    address,
    problem: `has tables of a build before 0.1.0 at ${address}, which this one cannot read; nothing in them was changed`,
    fix: "Export what you need with the checkout that made them (`npm run longhaul -- export ID`) and end it with `npm run longhaul -- down`; then set them aside: rename the folder .longhaul, or name an empty database in DATABASE_URL.",
    cause,
  });
}
