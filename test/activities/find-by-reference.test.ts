import { expect, test } from "vitest";
import { createSession } from "../../activities/store/sessions.ts";
import { resolveConfig } from "../../client/config/config.ts";
import { findByReference } from "../../client/lookup/find-by-reference.ts";
import { useDatabase } from "../support/test-database.ts";

const database = useDatabase();

test("without a session, how to start one is said; of several, at least two are named", async () => {
  const { db } = database.store;
  await expect(findByReference(db, "@last")).rejects.toThrow("There are no sessions yet.");
  await expect(findByReference(db, "calm")).rejects.toMatchObject({
    fix: expect.stringContaining("longhaul run") as string,
  });
  const config = resolveConfig({}, {}, "/").run;
  const begin = (n: number) => createSession(database.store, { id: `calm-owl-${n}`, task: "t", config });
  for (const n of [1, 2, 3, 4, 5, 6]) await begin(n);
  await expect(findByReference(db, "calm")).rejects.toThrow("calm-owl-2, calm-owl-1.");
  await begin(7);
  await expect(findByReference(db, "calm")).rejects.toThrow("calm-owl-4, calm-owl-3 and others.");
});
