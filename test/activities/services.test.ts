import { afterAll, beforeAll, expect, test } from "vitest";
import { createTestDatabase, type TestDatabase } from "../support/test-database.ts";

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());

test("a test database has the tables of the newest migration and no rows", async () => {
  const { rows } = await database.store.pool.query<{ rows: string }>("select count(*) as rows from sessions");
  expect(rows).toEqual([{ rows: "0" }]);
});
