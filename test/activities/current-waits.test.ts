/** What lists say that a session waits for, and until when. */
import { expect, it } from "vitest";
import { appendEvents } from "../../activities/store/events.ts";
import { readFigures } from "../../activities/store/reading.ts";
import { openQuestion, setWaiting } from "../../activities/store/questions.ts";
import { openWait, sessionWaits } from "../../activities/store/waits.ts";
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

it("is waited for by a question that does not block only when nothing else is", async () => {
  const { db } = database.store;
  await createSession(database.store, { id: "later", task: "t", config: resolveConfig({}, {}, "/").run });
  const place = { sessionId: "later", epoch: 1, step: 1 };
  const waitsFor = async () => (await sessionWaits(db, ["later"])).map((wait) => wait.waitsFor);
  await openQuestion(db, {
    ...place,
    id: "s1c0",
    callIndex: 0,
    kind: "ask",
    text: "MIT?",
    options: null,
    defaultText: null,
    inputHash: null,
    expiresInMs: undefined,
    blocks: false,
  });
  expect(await waitsFor()).toEqual([]);
  await setWaiting(db, "later", true);
  expect(await waitsFor()).toEqual(["person"]);
  const startedAt = new Date();
  await openWait(db, { ...place, callIndex: 1, kind: "time", target: { call: "c" }, startedAt });
  expect(await waitsFor()).toEqual(["time"]);
});
