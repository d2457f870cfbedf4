/** A worker reads a message once, and its marks every time. */
import { and, eq } from "drizzle-orm";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { StoredMessage } from "../../activities/contract/message.ts";
import { textOf } from "../../activities/compaction/session-facts.ts";
import { openStore } from "../../activities/store/db.ts";
import { storedMessages } from "../../activities/store/schema/index.ts";
import { forgetSeen, keepSeen, seenRows } from "../../activities/store/seen-rows.ts";
import { loadView } from "../../activities/store/load-view.ts";
import { summaryText, work } from "../support/compacting.ts";
import { compactingSession } from "../support/compacting-session.ts";
import { rowsOf, user } from "../support/rows.ts";
import { createTestDatabase, type TestDatabase } from "../support/test-database.ts";

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());

/** The view as a worker reads it that was started just now. */
async function unseen(id: string): Promise<StoredMessage[]> {
  const other = openStore({ url: database.url, maxConnections: 1 });
  try {
    return await loadView(other.db, id);
  } finally {
    await other.close();
  }
}

describe("rows that were seen", () => {
  it("are not read again, while what is new is, and every mark", async () => {
    const one = await compactingSession(database, work(4));
    await one.view();
    const { db } = database.store;
    // Nothing of ours ever changes a content; that it is told from here shows where it came from.
    const where = and(eq(storedMessages.sessionId, one.id), eq(storedMessages.sequence, 3));
    await db.update(storedMessages).set({ content: [], prunedStep: 4 }).where(where);
    await one.add([user("And mind the pier.")], 5);
    const view = await one.view();
    expect(view[2]?.content).not.toEqual([]);
    expect(view[2]?.prunedStep).toBe(4);
    expect(view.map(textOf).at(-1)).toBe("And mind the pier.");
    expect((await unseen(one.id))[2]?.content).toEqual([]);
  });

  it("make no difference through rounds, what is taken back, and what comes after", async () => {
    const one = await compactingSession(database, work(30), summaryText(), summaryText());
    const same = async () => expect(await one.view()).toEqual(await unseen(one.id));
    await same();
    await one.summarize(1);
    await same();
    await one.add(work(25), 40);
    await same();
    await one.summarize(2);
    await same();
    await one.undo("undo-2");
    await same();
    await one.undo("undo-1");
    await one.prune();
    await same();
  });

  it("do not hide a row whose transaction began before a later row was seen", async () => {
    const one = await compactingSession(database, work(2));
    const slow = await database.store.pool.connect();
    try {
      await slow.query("begin");
      await slow.query(
        `insert into stored_messages (session_id, sequence, position, epoch, step, slot, role, kind, content, token_count)
         values ($1, 50, 50, 1, 50, 'user', 'user', 'guidance', '[{"type":"text","text":"Slow."}]', 5)`,
        [one.id],
      );
      await one.add([user("Quick.")], 60);
      expect((await one.view()).map(textOf)).toContain("Quick.");
      await slow.query("commit");
    } finally {
      slow.release();
    }
    expect((await one.view()).map(textOf)).toContain("Slow.");
    expect(await one.view()).toEqual(await unseen(one.id));
  });

  it("count for nothing where another server answers: it may lack the last rows and give their ids again", async () => {
    const one = await compactingSession(database, work(2));
    await one.view();
    const { pool } = database.store;
    const { byId, serverStart } = seenRows(pool, one.id);
    const wrong = new Map(
      [...byId].map(([id, row]) => [id, { ...row, message: { ...row.message, sequence: 0 } }] as const),
    );
    keepSeen(pool, one.id, { byId: wrong, serverStart });
    expect((await one.view()).map((row) => row.sequence)).toEqual([...wrong].map(() => 0));
    keepSeen(pool, one.id, { byId: wrong, serverStart: "2026-01-01 00:00:00+00" });
    expect(await one.view()).toEqual(await unseen(one.id));
    expect(seenRows(pool, one.id).serverStart).toBe(serverStart);
  });

  it("are bounded: the sessions that were read longest ago make room, and what left the view is not kept", async () => {
    const { pool } = database.store;
    const [message] = rowsOf([user("Go on.")]);
    if (message === undefined) throw new Error("There is one row.");
    const contents = (chars: number) => ({
      serverStart: undefined,
      byId: new Map([[1, { message, marks: "", chars }]]),
    });
    keepSeen(pool, "first", contents(40), 100);
    keepSeen(pool, "second", contents(40), 100);
    keepSeen(pool, "first", contents(50), 100);
    keepSeen(pool, "third", contents(50), 100);
    expect(["first", "second", "third"].map((id) => seenRows(pool, id).byId.size)).toEqual([1, 0, 1]);
    forgetSeen(pool, "third");
    forgetSeen(pool, "never seen");
    expect(seenRows(pool, "third").byId.size).toBe(0);
    keepSeen(pool, "huge", contents(101), 100);
    expect(seenRows(pool, "huge").byId.size).toBe(0);
    const one = await compactingSession(database, work(30), summaryText());
    await one.view();
    await one.summarize();
    const view = await one.view();
    expect(seenRows(pool, one.id).byId.size).toBe(view.length);
  });
});
