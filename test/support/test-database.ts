/** A test file's own database: a copy of the migrated template, made in milliseconds. */
import { randomBytes } from "node:crypto";
import { inject } from "vitest";
import { openStore, type Store } from "../../activities/store/db.ts";
import { perFile } from "./per-file.ts";
import { createDatabase, dropDatabase } from "./services.ts";

export interface TestDatabase {
  readonly url: string;
  readonly store: Store;
  /** Closes the store and drops the database, even while others are connected. */
  drop(): Promise<void>;
}

/** @param maxConnections of the store's pool */
export async function createTestDatabase(maxConnections = 10): Promise<TestDatabase> {
  const server = inject("databaseServer");
  const name = `test_${randomBytes(6).toString("hex")}`;
  const url = await createDatabase(server, name, inject("databaseTemplate"));
  const store = openStore({ url, maxConnections });
  return {
    url,
    store,
    drop: async () => {
      await store.close();
      await dropDatabase(server, name);
    },
  };
}

/** One for all tests of a file. */
export function useDatabase(maxConnections?: number): TestDatabase {
  return perFile(
    () => createTestDatabase(maxConnections),
    (database) => database.drop(),
  );
}
