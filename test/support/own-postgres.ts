/** A test's own Postgres with a migrated database, which the test stops, kills, starves and fills. */
import { migrateStore, openStore, type Store } from "../../activities/store/db.ts";
import { type PostgresServer, type PostgresServerOptions, startPostgresServer } from "./postgres-server.ts";

export interface OwnPostgres extends PostgresServer {
  /** The test's own connections; they survive restarts, like the product's. */
  readonly store: Store;
}

export async function startOwnPostgres(options: PostgresServerOptions = {}): Promise<OwnPostgres> {
  const server = await startPostgresServer(options);
  const store = openStore({ url: server.url, maxConnections: 4 });
  await migrateStore(store);
  return {
    ...server,
    store,
    async close() {
      await store.close().catch(() => undefined);
      await server.close();
    },
  };
}
