/** A worker or a connection that is lost between the summary's answer and its commit. */
import pg from "pg";
import { afterAll, beforeAll, expect, it } from "vitest";
import { answer, compactingSession } from "../support/compacting-session.ts";
import { summaryText, work } from "../support/compacting.ts";
import { eventually } from "../support/eventually.ts";
import { useDatabase } from "../support/test-database.ts";

const database = useDatabase();
let outsider: pg.Client;
beforeAll(async () => {
  outsider = new pg.Client({ connectionString: database.url });
  await outsider.connect();
});
afterAll(() => outsider.end());

/** Ends the connection of this database that waits for a lock, as a kill -9 of its worker would. */
async function cutTheWaiting(): Promise<void> {
  await eventually("the commit waits", async () => {
    // Inside its transaction the outsider would see the same activity forever.
    await outsider.query("select pg_stat_clear_snapshot()");
    const { rowCount } = await outsider.query(
      `select pg_terminate_backend(pid) from pg_stat_activity
       where datname = current_database() and pid <> pg_backend_pid() and wait_event_type = 'Lock'`,
    );
    return rowCount === 1;
  });
}

it(
  "a round that was answered and not stored changes nothing; the next attempt makes it once",
  { tags: ["case-24", "R6"] },
  async () => {
    const session = await compactingSession(
      database,
      work(30),
      async () => {
        // Anyone who commits now has to wait.
        await outsider.query("begin");
        await outsider.query("select id from sessions where id = $1 for update", [session.id]);
        return answer(summaryText({ state: "Never stored." }));
      },
      summaryText({ state: "Stored once." }),
    );
    const before = await session.all();
    const lost = expect(session.summarize()).rejects.toThrow();
    await cutTheWaiting();
    await lost;
    await outsider.query("rollback");
    expect(await session.rounds()).toEqual([]);
    expect(await session.all()).toEqual(before);

    expect(await session.summarize(1, { attempt: 2 })).toMatchObject({ kind: "compacted", round: 1 });
    expect(await session.summarize(1, { attempt: 3 })).toMatchObject({ kind: "compacted", round: 1 });
    expect(session.requests).toHaveLength(2);
    const [round, ...more] = await session.rounds();
    expect(more).toEqual([]);
    expect(round).toMatchObject({ round: 1, status: "compacted" });
    expect(round?.summaryContent).toContain("Stored once.");
    const summaries = (await session.all()).filter((row) => row.kind === "summary");
    expect(summaries).toHaveLength(1);
  },
);
