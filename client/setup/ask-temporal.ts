/** Sends one request to a Temporal server, over its own connection. */
import type { Connection } from "@temporalio/client";
import { temporalConnection } from "../../temporal/temporal-connection.ts";
import { withTimeout } from "../../temporal/with-timeout.ts";

/** @throws Error if no server answers within `connectMs`; also throws whatever `ask` throws */
export async function askTemporal<T>(
  address: string,
  connectMs: number,
  ask: (connection: Connection, namespace: string) => Promise<T>,
): Promise<T> {
  const { connection: options, namespace } = temporalConnection(address);
  // Loaded on demand: most starts do not need it.
  const { Connection } = await import("@temporalio/client");
  const connecting = Connection.connect({ ...options, connectTimeout: connectMs });
  const connection = await withTimeout(connecting, connectMs);
  try {
    return await ask(connection, namespace);
  } finally {
    await connection.close().catch(() => {});
  }
}
