/** Until when lists say that a session waits for its model's provider. */
import { expect, it } from "vitest";
import { appendEvents } from "../../activities/store/events.ts";
import { readFigures } from "../../activities/store/reading.ts";
import { createSession } from "../../activities/store/sessions.ts";
import { resolveConfig } from "../../client/config/config.ts";
import { useDatabase } from "../support/test-database.ts";

const database = useDatabase();
const HOUR_MS = 3_600_000;

it("a session waits from the failure that says so until its next request", async () => {
  const { store } = database;
  await createSession(store, { id: "waits", task: "t", config: resolveConfig({}, {}, "/").run });
  const fails = (retryInMs: number | null) => {
    const data = { class: "rate-limit", message: "Used up.", retryInMs, final: false };
    return appendEvents(store.db, "waits", 1, [{ type: "llm:error", step: 1, data }]);
  };
  const until = async () => (await readFigures(store.db, ["waits"])).get("waits")?.waitsUntil ?? null;
  expect(await until()).toBeNull();
  await fails(null);
  expect(await until()).toBeNull();
  await fails(5 * HOUR_MS);
  const leftMs = Date.parse((await until()) ?? "") - Date.now();
  expect(leftMs).toBeGreaterThan(4.9 * HOUR_MS);
  expect(leftMs).toBeLessThan(5.1 * HOUR_MS);
  const data = {
    estimatedInput: 1,
    estimated: true,
    triggerTokens: 100_000,
    limit: 100_000,
    window: 128_000,
  };
  await appendEvents(store.db, "waits", 1, [{ type: "step:started", step: 1, data }]);
  expect(await until()).toBeNull();
});
