/** What workers know about watchers, and what they announce to each other. */
import { randomUUID } from "node:crypto";
import { expect, it, onTestFinished } from "vitest";
import {
  hearAnnouncements,
  type Announcements,
  listen,
  wakeWatchers,
} from "../../activities/store/announcements.ts";
import { SharedListener } from "../../client/watch/shared-listener.ts";
import { eventually } from "../support/eventually.ts";
import { useDatabase } from "../support/test-database.ts";

const database = useDatabase();

/** Announcements that are connected: they know that an unwatched session is unwatched. */
async function hearing(): Promise<Announcements> {
  const announcements = hearAnnouncements(database.store);
  onTestFinished(() => announcements.close());
  await eventually("it hears", () => !announcements.isWatched("unwatched"));
  return announcements;
}

it("a session is watched from when someone listens until the last of them is gone, however that came", async () => {
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
  await one.wake([id]);
  await eventually("both are woken", () => woken === 2);
  await wakeWatchers(database.store, id);
  await eventually("by a client too", () => woken === 4);
  leave();
  await one.wake([id]);
  expect(one.isWatched(id)).toBe(true);
  const alone = await listen(
    database.store,
    id,
    () => undefined,
    () => undefined,
  );
  leaveToo();
  await one.wake([id]);
  expect(one.isWatched(id)).toBe(true);
  await database.store.pool.query(
    `select pg_terminate_backend(pid) from pg_locks where locktype = 'advisory' and mode = 'ShareLock'
      and database = (select oid from pg_database where datname = current_database())`,
  );
  await eventually("it is forgotten", async () => {
    await one.wake([id]);
    return !one.isWatched(id);
  });
  alone();
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
  const announcements = hearAnnouncements({ ...database.store, pool });
  onTestFinished(() => announcements.close());
  await eventually("it reads", () => isReading);
  expect(announcements.isWatched("a")).toBe(true);
  reads.resolve(undefined);
  await eventually("it has read", () => !announcements.isWatched("a"));
});

it("a stop reaches all workers, and one whose connection was lost hears again", async () => {
  const [one, other] = [await hearing(), await hearing()];
  const stops: string[] = [];
  const stopHearing = other.onStop("a", () => stops.push("a"));
  one.stop("b");
  one.stop("a");
  await eventually("the other gets it", () => stops.length === 1);
  await database.store.pool.query(
    "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()",
  );
  // It is connected again within moments, or half a second later: what is announced before that is lost.
  await eventually("it gets another", () => {
    one.stop("a");
    return stops.length > 1;
  });
  stopHearing();
  const heard = stops.length;
  other.stop("a");
  expect(stops).toHaveLength(heard);
});
