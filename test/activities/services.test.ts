import { expect, test } from "vitest";
import { useDatabase } from "../support/test-database.ts";

const database = useDatabase();

test("a test database has the tables of the newest migration and no rows", async () => {
  const { rows } = await database.store.pool.query<{ rows: string }>("select count(*) as rows from sessions");
  expect(rows).toEqual([{ rows: "0" }]);
});
