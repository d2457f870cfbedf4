import { describe, expect, it } from "vitest";
import type { NewEvent } from "../../activities/store/event.ts";
import { appendChunks, appendEvents } from "../../activities/store/events.ts";
import { createSession } from "../../activities/store/sessions.ts";
import { resolveConfig } from "../../client/config/config.ts";
import { follow, type Follow, type FollowItem } from "../../client/watch/follow.ts";
import { useDatabase } from "../support/test-database.ts";

const database = useDatabase();

let count = 0;
async function newSession(): Promise<string> {
  const id = `follow-${++count}`;
  await createSession(database.store, { id, task: "t", config: resolveConfig({}, {}, "/").run });
  return id;
}

const thinking = (step: number): NewEvent => ({ type: "llm:thinking", step, data: { model: "m" } });
const add = (id: string, ...events: NewEvent[]) => appendEvents(database.store.db, id, 1, events);
const chunk = (sessionId: string, text: string) =>
  appendChunks(database.store, [
    { sessionId, epoch: 1, step: 1, attempt: 1, chunks: [{ chunkType: "text", text }] },
  ]);
const end = (id: string) =>
  database.store.pool.query(
    "update sessions set status = 'completed', result = 'ok', ended_at = now() where id = $1",
    [id],
  );

function watch(id: string, options: Partial<Follow> = {}) {
  return follow({
    store: database.store,
    sessionId: id,
    afterSeq: 0,
    signal: new AbortController().signal,
    describe: async () => ({ status: "COMPLETED", runId: "r" }),
    ...options,
  });
}

async function collect(items: AsyncIterable<FollowItem>): Promise<FollowItem[]> {
  const all: FollowItem[] = [];
  for await (const item of items) all.push(item);
  return all;
}
const seqs = (items: readonly FollowItem[]) =>
  items.flatMap((item) => (item.kind === "event" ? [item.event.seq] : []));

describe("follow", () => {
  it.each([0, 1, 3, 40])(
    "notices a restore from an older copy, and starts again behind it: %i new events since",
    async (since) => {
      const id = await newSession();
      const { pool } = database.store;
      await add(id, ...Array.from({ length: 5 }, (_, step) => thinking(step)));
      await pool.query("update events set at = at - interval '1 minute' where session_id = $1", [id]);
      const leave = new AbortController();
      const items = watch(id, {
        signal: leave.signal,
        describe: async () => ({ status: "RUNNING", runId: "r" }),
      });
      const next = async (kind: FollowItem["kind"]) => {
        for (;;) {
          const { value } = await items.next();
          if (value?.kind === kind) return value;
        }
      };
      for (let seen = 0; seen < 5; seen += 1) await next("event");
      // As a copy from after the second event has it.
      await pool.query("delete from events where session_id = $1 and seq > 2", [id]);
      await pool.query("update cursors set event_seq = 2 where session_id = $1", [id]);
      await add(id, ...Array.from({ length: since }, () => thinking(9)));
      expect(await next("restored")).toEqual({ kind: "restored", toSeq: 2 });
      if (since === 0) await add(id, thinking(9));
      expect(await next("event")).toMatchObject({ event: { seq: 3, step: 9 } });
      leave.abort();
      await items.return(undefined);
    },
  );

  it("notices that it is to begin behind the end of a restored record", async () => {
    const id = await newSession();
    await add(id, thinking(1), thinking(2));
    await end(id);
    const items = await collect(watch(id, { afterSeq: 40 }));
    expect(items.filter(({ kind }) => kind === "restored")).toEqual([{ kind: "restored", toSeq: 2 }]);
    expect(items.at(-1)).toMatchObject({ kind: "ended", lastSeq: 2 });
  });

  it("takes no end of an answer, whose pieces are dropped, for a restore", async () => {
    const id = await newSession();
    await add(id, thinking(1));
    const items = watch(id);
    for (let kind = ""; kind !== "caught-up";) kind = (await items.next()).value?.kind ?? "";
    await chunk(id, "a");
    await database.store.pool.query("delete from stream_chunks where session_id = $1", [id]);
    await end(id);
    const rest = await collect(items);
    expect(rest.filter(({ kind }) => kind === "restored")).toEqual([]);
  });

  it(
    "gives events and live pieces as one list in order, and the same to anyone who comes later",
    { tags: ["U10"] },
    async () => {
      const id = await newSession();
      const early = collect(watch(id));
      await add(id, thinking(1));
      await chunk(id, "a");
      await add(id, thinking(1));
      await chunk(id, "b");
      await end(id);
      expect(seqs(await early)).toEqual([1, 2, 3, 4]);
      const late = await collect(watch(id));
      expect(seqs(late)).toEqual([1, 2, 3, 4]);
      expect(late.at(-1)).toMatchObject({ kind: "ended", status: "completed", result: "ok", lastSeq: 4 });
      expect(seqs(await collect(watch(id, { afterSeq: 2 })))).toEqual([3, 4]);
    },
  );

  it("loses nothing while many write at once", async () => {
    const id = await newSession();
    const all = collect(watch(id));
    await Promise.all(
      Array.from({ length: 60 }, (_, i) => (i % 2 === 0 ? add(id, thinking(i)) : chunk(id, `${i}`))),
    );
    await end(id);
    expect(seqs(await all)).toEqual(Array.from({ length: 60 }, (_, i) => i + 1));
  });

  it("is woken at once, not by the next poll", { tags: ["A23"] }, async () => {
    const id = await newSession();
    const stop = new AbortController();
    const items = watch(id, {
      signal: stop.signal,
      describe: async () => ({ status: "RUNNING", runId: "r" }),
    });
    const next = async (kind: FollowItem["kind"]) => {
      for (;;) {
        const { value, done } = await items.next();
        if (done || value.kind === kind) return value;
      }
    };
    // Listening takes a moment to begin; a second pass means that it has.
    await next("tick");
    await next("tick");
    // Each pass polls a second after the one before. On a busy machine one wake may come late, but not ten.
    const waitsMs: number[] = [];
    for (let seq = 1; seq <= 10; seq += 1) {
      await next("tick");
      const begun = Date.now();
      await add(id, thinking(1));
      expect(await next("event")).toMatchObject({ event: { seq } });
      waitsMs.push(Date.now() - begun);
    }
    expect(Math.min(...waitsMs)).toBeLessThan(700);
    stop.abort();
    await items.return(undefined);
  });

  it("continues if its connections were cut", { tags: ["A23"] }, async () => {
    const id = await newSession();
    await add(id, thinking(1));
    const items = watch(id, { describe: async () => ({ status: "RUNNING", runId: "r" }) });
    await items.next();
    await database.store.pool.query(
      "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()",
    );
    await add(id, thinking(2));
    for (;;) {
      const { value } = await items.next();
      if (value?.kind === "event") {
        expect(value.event).toMatchObject({ seq: 2, step: 2 });
        break;
      }
    }
    await items.return(undefined);
  });

  it("waits while an ended session is just being resumed", async () => {
    const id = await newSession();
    await end(id);
    let asked = 0;
    const describe = async () => ({ status: ++asked < 3 ? "RUNNING" : "COMPLETED", runId: "r" });
    const items = await collect(watch(id, { describe }));
    expect(asked).toBeGreaterThanOrEqual(3);
    expect(items.at(-1)?.kind).toBe("ended");
  });

  it(
    "says why, if a run was ended in Temporal and could not write so",
    { tags: ["U16"], timeout: 30_000 },
    async () => {
      const id = await newSession();
      const items = await collect(
        watch(id, { describe: async () => ({ status: "TERMINATED", runId: "r" }) }),
      );
      expect(items.at(-1)).toMatchObject({
        kind: "ended",
        status: "cancelled",
        reason: expect.stringContaining("terminated"),
      });
    },
  );
});
