/** Why Postgres could not be used, as a typed failure: silent, refusing, or unknown to this machine. Pure. */
import { PostgresAddressWrong, readPostgresAddress } from "../activities/store/postgres-address.ts";
import { innermostReason } from "../activities/contract/errors.ts";
import { EarlierTables, SchemaUnusable } from "../activities/store/migrate.ts";
import { plainReason } from "./plain-reason.ts";
import { poolerRefusal } from "./probe-pooler.ts";
import { ServiceMissing } from "./service-missing.ts";
import { WrongSettings } from "./wrong-settings.ts";

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
const TLS: readonly (readonly [words: RegExp, Trouble])[] = [
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
  const tls = TLS.find(([words]) => words.test(reason) || codes.some((code) => words.test(code)));
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
