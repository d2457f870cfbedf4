/** The view is found by position and role, not by asking each row whether a round replaced it: it must be what the marks say. */
import { and, asc, eq, isNull, ne, sql } from "drizzle-orm";
import { drizzle } from "drizzle-orm/node-postgres";
import { describe, expect, it } from "vitest";
import { strategyNames, type StrategyName } from "../../activities/config/strategies.ts";
import { messageText } from "../../activities/compaction/session-facts.ts";
import { outOfView } from "../../activities/store/compactions.ts";
import { messages, sessions } from "../../activities/store/schema/index.ts";
import { summaryText, work } from "../support/compacting.ts";
import { compactingSession } from "../support/compacting-session.ts";
import { user } from "../support/rows.ts";
import { useDatabase } from "../support/test-database.ts";

const database = useDatabase();

type CompactingSession = Awaited<ReturnType<typeof compactingSession>>;

/** The sequences that the marks alone say are in view. */
async function marked(session: CompactingSession): Promise<number[]> {
  const rows = await database.store.db
    .select({ sequence: messages.sequence })
    .from(messages)
    .where(
      and(
        eq(messages.sessionId, session.id),
        // Its prompt is not a message that is sent.
        ne(messages.role, "system"),
        eq(messages.isCompacted, false),
        isNull(messages.supersededEpoch),
      ),
    )
    .orderBy(asc(messages.position));
  return rows.map((row) => row.sequence);
}

async function withStrategy(strategy: StrategyName, options: object = {}): Promise<CompactingSession> {
  const steps = [...work(12), user("Use tabs."), ...work(14)];
  const session = await compactingSession(database, steps, summaryText(), summaryText(), summaryText());
  const { db } = database.store;
  const [row] = await db.select().from(sessions).where(eq(sessions.id, session.id));
  const config = row?.config as { context: object };
  await db
    .update(sessions)
    .set({ config: { ...config, context: { ...config.context, strategy, options } } })
    .where(eq(sessions.id, session.id));
  return session;
}

describe("the view", () => {
  it.each(strategyNames)("of %s holds what the marks say, in order, round after round", async (strategy) => {
    const session = await withStrategy(strategy);
    for (const round of [1, 2, 3]) {
      expect(await session.summarize(round)).toMatchObject({ kind: "compacted" });
      expect((await session.view()).map((row) => row.sequence)).toEqual(await marked(session));
      await session.add([...work(8), user(`And mind pier ${round}.`), ...work(9)], 40 * round);
      expect((await session.view()).map((row) => row.sequence)).toEqual(await marked(session));
    }
  });

  it("holds what the marks say if rounds are undone, and if results were pruned", async () => {
    const session = await compactingSession(database, work(30), summaryText(), summaryText());
    const isAsMarked = async () =>
      expect((await session.view()).map((row) => row.sequence)).toEqual(await marked(session));
    await session.summarize(1);
    await session.add(work(25), 40);
    await session.summarize(2);
    await session.undo("undo-2");
    await isAsMarked();
    await session.undo("undo-1");
    await isAsMarked();
    expect(await session.view()).toHaveLength(
      (await session.all()).filter((row) => row.kind !== "summary").length,
    );
    await session.prune();
    await isAsMarked();
    const pruned = (await session.all()).filter((row) => row.prunedStep !== null);
    expect(pruned.length).toBeGreaterThan(0);
    expect(pruned.every((row) => row.prunedAt !== null && row.compactedAt === null)).toBe(true);
  });

  it("does not hide a row whose transaction began before a later row was read", async () => {
    const session = await compactingSession(database, work(2));
    const slow = await database.store.pool.connect();
    try {
      await slow.query("begin");
      await slow.query(
        `insert into stored_messages (session_id, sequence, position, epoch, step, slot, role, kind, content, token_count)
         values ($1, 50, 50, 1, 50, 'user', 'user', 'guidance', '[{"type":"text","text":"Slow."}]', 5)`,
        [session.id],
      );
      await session.add([user("Quick.")], 60);
      expect((await session.view()).map(messageText)).toContain("Quick.");
      await slow.query("commit");
    } finally {
      slow.release();
    }
    expect((await session.view()).map(messageText)).toContain("Slow.");
  });

  it.each([
    [0, 0],
    [7, 6],
    [50, 48],
  ])(
    "keeps what middle removal leaves at the beginning, in whole batches: of %i, %i",
    async (headMessages, whole) => {
      const session = await withStrategy("middle-removal", { headMessages, keepMessages: 2 });
      await session.add(work(30), 40);
      const before = await session.all();
      for (const round of [1, 2]) {
        expect(await session.summarize(round)).toMatchObject({ kind: "compacted" });
        await session.add(work(12), 100 * round);
        const view = await session.view();
        expect(view.map((row) => row.sequence)).toEqual(await marked(session));
        const head = view.slice(
          0,
          view.findIndex((row) => row.kind === "summary"),
        );
        // The task is there anyway, and what a person said.
        const worked = (row: { readonly role: string }) => row.role !== "user";
        const sequences = (rows: readonly { readonly sequence: number }[]) => rows.map((row) => row.sequence);
        expect(sequences(head.filter(worked))).toEqual(sequences(before.filter(worked).slice(0, whole)));
      }
    },
  );

  it("finds what is out of it by an index, however many rounds other sessions have", async () => {
    const client = await database.store.pool.connect();
    try {
      await client.query("begin");
      await client.query(`insert into compaction_events
        (session_id, epoch, step, round, trigger, strategy, status, attempts, tokens_before, tokens_after, duration_ms, replaced)
        select 'other-' || n % 100, 1, n, n, 'threshold', 'reactive-overflow', 'compacted', '[]', 9, 5, 1, '{[2,9]}'
        from generate_series(1, 5000) as n`);
      await client.query("analyze compaction_events");
      const { rows } = await drizzle(client).execute<{ "QUERY PLAN": string }>(
        sql`explain ${outOfView("other-7")}`,
      );
      expect(rows.map((row) => row["QUERY PLAN"]).join("\n")).toContain("compaction_events_session_idx");
    } finally {
      await client.query("rollback");
      client.release();
    }
  });

  it("costs a round its own row and the summary, and nothing of what it replaces or undoes", async () => {
    const session = await compactingSession(database, work(60), summaryText());
    const versions = async () => {
      const { rows } = await database.store.pool.query<{ sequence: string; version: string }>(
        `select sequence, xmin::text as version from stored_messages where session_id = $1 order by sequence`,
        [session.id],
      );
      return rows;
    };
    const before = await versions();
    expect(await session.summarize()).toMatchObject({ kind: "compacted" });
    expect((await versions()).slice(0, -1)).toEqual(before);
    expect((await marked(session)).length).toBeLessThan(before.length / 2);
    await session.undo("undo-1");
    expect((await versions()).slice(0, -1)).toEqual(before);
    // All but the prompt.
    expect(await marked(session)).toHaveLength(before.length - 1);
  });
});
