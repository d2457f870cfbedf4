/** A Postgres of a test's own, with a migrated database: to be stopped, killed, starved and filled. */
import { migrateStore, openStore, type Store } from "../../activities/store/db.ts";
import { type PostgresServer, type PostgresServerOptions, startPostgresServer } from "./postgres-server.ts";

export interface OwnPostgres extends PostgresServer {
  /** The test's own way in; outlives restarts like the product's. */
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
