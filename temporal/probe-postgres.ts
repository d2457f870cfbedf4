/** Checks whether Postgres answers, and whether a worker could keep its tables there. */
import pg from "pg";
import { lookAtTables } from "../activities/store/migrate.ts";
import { placeOf, readPostgresAddress } from "../activities/store/postgres-address.ts";
import { patiently, PROBE_MS, within, type Patience } from "./patience.ts";
import { mayNotMigrate, postgresMissing } from "./postgres-missing.ts";
import { withoutPassword } from "./probe.ts";
import { refusePooler } from "./probe-pooler.ts";
import { ServiceMissing } from "./service-missing.ts";

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
  const asked = { address: withoutPassword(url), fix: POSTGRES_FIX, isNamed: true };
  try {
    const address = readPostgresAddress(url);
    const connectMs = Math.min(address.connectTimeoutMs ?? patience.connectMs, patience.connectMs);
    return await patiently("Postgres", placeOf(address), { ...patience, connectMs }, async (timeoutMs) => {
      const client = new pg.Client({
        ...address.config,
        connectionTimeoutMillis: timeoutMs,
        query_timeout: timeoutMs,
      });
      client.on("error", () => {});
      try {
        await client.connect();
        return await ask(client, asked.address, timeoutMs);
      } finally {
        await client.end().catch(() => {});
      }
    });
  } catch (error) {
    throw postgresMissing(error, asked);
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
