/** Detects a pooler in front of Postgres that may give each transaction another connection. */
import pg from "pg";
import { readPostgresAddress } from "../activities/store/postgres-address.ts";
import { ServiceMissing } from "./service-missing.ts";

/** A client's identity. Postgres reports its backend's process; a pooler reports its own number. */
type Known = Pick<pg.ClientBase, "query"> & { readonly processID?: number | null };

/** How often two clients are compared: a pooler may happen to give one the same connection again. Source: ours. */
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
  const own = await backendOf(client);
  for (let round = 0; round < ROUNDS; round += 1) {
    await other.query("begin");
    try {
      // While a client's transaction is open, no other client gets its connection.
      if ((await backendOf(other)) === own || (await backendOf(client)) !== own) return true;
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
export function poolerRefusal(error: unknown, address: string): ServiceMissing | undefined {
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
