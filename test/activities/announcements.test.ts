/** What workers know about watchers, and what they announce to each other. */
import { randomUUID } from "node:crypto";
import { expect, it, onTestFinished } from "vitest";
import { listen, StoreAnnouncements } from "../../activities/store/announcements.ts";
import { appendChunks, appendEvents } from "../../activities/store/events.ts";
import { openStore } from "../../activities/store/db.ts";
import { createSession } from "../../activities/store/sessions.ts";
import { SharedListener } from "../../client/watch/shared-listener.ts";
import { configOf } from "../support/run-config.ts";
import { eventually } from "../support/eventually.ts";
import { useDatabase } from "../support/test-database.ts";

const database = useDatabase();

/** Announcements that are connected: they know that an unwatched session is unwatched. */
async function hearing(): Promise<StoreAnnouncements> {
  const announcements = new StoreAnnouncements(database.store);
  onTestFinished(() => announcements.stop());
  await announcements.start();
  await eventually("it hears", () => !announcements.isWatched("unwatched"));
  return announcements;
}

async function wakeBy(announcements: StoreAnnouncements, id: string): Promise<void> {
  announcements.wake(id);
  await announcements.flush();
}

it("a session is watched from its first listener until its last is gone, however each came", async () => {
  const [one, other] = [await hearing(), await hearing()];
  const id = randomUUID();
  const begun: string[] = [];
  one.onWatched(id, () => begun.push(id));
  let woken = 0;
  const shared = new SharedListener(database.store);
  const [leave, leaveToo] = [
    await shared.listen(
      id,
      () => (woken += 1),
      () => undefined,
    ),
    await shared.listen(
      id,
      () => (woken += 1),
      () => undefined,
    ),
  ];
  await eventually("both have heard", () => one.isWatched(id) && other.isWatched(id));
  expect(begun).toEqual([id]);
  expect(one.isWatched("another")).toBe(false);
  // A listener that starts later learns of those that were there before.
  expect((await hearing()).isWatched(id)).toBe(true);
  await wakeBy(one, id);
  await eventually("both are woken", () => woken === 2);
  await wakeBy(database.store.announcements, id);
  await eventually("by a process that hears nothing too", () => woken === 4);
  leave();
  await wakeBy(one, id);
  expect(one.isWatched(id)).toBe(true);
  const alone = await listen(
    database.store,
    id,
    () => undefined,
    () => undefined,
  );
  leaveToo();
  await wakeBy(one, id);
  expect(one.isWatched(id)).toBe(true);
  await database.store.pool.query(
    `select pg_terminate_backend(pid) from pg_locks where locktype = 'advisory' and mode = 'ShareLock'
      and database = (select oid from pg_database where datname = current_database())`,
  );
  await eventually("it is forgotten", async () => {
    await wakeBy(one, id);
    return !one.isWatched(id);
  });
  alone();
});

it("what is appended to a session's log, and nothing else, wakes its watchers once committed", async () => {
  const { store } = database;
  const id = randomUUID();
  await createSession(store, { id, task: "t", config: configOf({}) });
  let woken = 0;
  const end = await listen(
    store,
    id,
    () => (woken += 1),
    () => undefined,
  );
  onTestFinished(end);
  const event = { type: "llm:thinking", step: 1, data: { model: "m" } } as const;
  const chunks = [{ chunkType: "text", text: "t" }] as const;
  const wakes = async (count: number, what: string, append: () => Promise<unknown>) => {
    const before = woken;
    await append().catch(() => undefined);
    // What was not announced by now is not announced any more: notifications arrive in order.
    await store.announcements.flush();
    await wakeBy(store.announcements, id);
    await eventually(what, () => woken > before + count);
    expect(woken - before, what).toBe(count + 1);
  };
  await wakes(1, "an append", () => appendEvents(store.db, id, 1, [event]));
  await wakes(0, "an append of nothing", () => appendEvents(store.db, id, 1, []));
  await wakes(1, "a piece", () =>
    appendChunks(store, [{ sessionId: id, epoch: 1, step: 1, attempt: 1, chunks }]),
  );
  await wakes(1, "a transaction, only after its commit", () =>
    store.db.transaction(async (tx) => {
      await appendEvents(tx, id, 1, [event]);
      await appendEvents(tx, id, 1, [event]);
      await store.announcements.flush();
    }),
  );
  await wakes(0, "a transaction that is rolled back", () =>
    store.db.transaction(async (tx) => {
      await appendEvents(tx, id, 1, [event]);
      throw new Error("no");
    }),
  );
  const other = openStore({ url: database.url, maxConnections: 1 });
  await wakes(1, "a process that ends at once", async () => {
    await appendEvents(other.db, id, 1, [event]);
    await other.close();
  });
});

it("the sessions at work are those with a subscription to stops", async () => {
  const announcements = await hearing();
  const [end, endToo] = ["a", "a"].map((id) => announcements.onStop(id, () => undefined));
  announcements.onStop("b", () => undefined);
  end?.();
  expect(announcements.sessionsAtWork()).toEqual(["a", "b"]);
  endToo?.();
  expect(announcements.sessionsAtWork()).toEqual(["b"]);
});

it("any session may be watched until those that are watched have been read", async () => {
  const reads = Promise.withResolvers<undefined>();
  let isReading = false;
  const connect = async () => {
    const client = await database.store.pool.connect();
    const query = client.query.bind(client);
    client.query = (async (text: string, values: unknown[]) => {
      if (text.includes("pg_locks")) {
        isReading = true;
        await reads.promise;
      }
      return query(text, values);
    }) as typeof client.query;
    return client;
  };
  const pool = Object.assign(Object.create(database.store.pool), { connect });
  const announcements = new StoreAnnouncements({ pool });
  onTestFinished(() => announcements.stop());
  await announcements.start();
  await eventually("it reads", () => isReading);
  expect(announcements.isWatched("a")).toBe(true);
  reads.resolve(undefined);
  await eventually("it has read", () => !announcements.isWatched("a"));
});

it("a stop reaches all workers, and one whose connection was lost hears again", async () => {
  const [one, other] = [await hearing(), await hearing()];
  const stops: string[] = [];
  const stopHearing = other.onStop("a", () => stops.push("a"));
  one.announceStop("b");
  one.announceStop("a");
  await eventually("the other gets it", () => stops.length === 1);
  await database.store.pool.query(
    "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()",
  );
  // It is connected again within moments, or half a second later: what is announced before that is lost.
  await eventually("it gets another", () => {
    one.announceStop("a");
    return stops.length > 1;
  });
  stopHearing();
  const heard = stops.length;
  other.announceStop("a");
  expect(stops).toHaveLength(heard);
});
