/** A question to a Temporal server, over a connection of its own. */
import type { Connection } from "@temporalio/client";
import { temporalConnection } from "../../worker/connect/temporal-connection.ts";
import { withTimeout } from "../../worker/connect/with-timeout.ts";

/** @throws Error if no server answers within `connectMs`; what `ask` throws */
export async function askTemporal<T>(
  address: string,
  connectMs: number,
  ask: (connection: Connection, namespace: string) => Promise<T>,
): Promise<T> {
  const { connection: options, namespace } = temporalConnection(address);
  // Loaded on demand: most starts ask nothing.
  const { Connection } = await import("@temporalio/client");
  const connecting = Connection.connect({ ...options, connectTimeout: connectMs });
  const connection = await withTimeout(connecting, connectMs);
  try {
    return await ask(connection, namespace);
  } finally {
    await connection.close().catch(() => {});
  }
}
