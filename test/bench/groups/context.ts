/** What the transcript costs: loading it for a request, and replacing it by a summary that is there at once. */
import { setTimeout as delay } from "node:timers/promises";
import { eq, sql } from "drizzle-orm";
import type { Message } from "../../../activities/contract/message.ts";
import { viewSize } from "../../../activities/transcript/size.ts";
import { estimateMessage } from "../../../activities/contract/tokens.ts";
import { buildMessages } from "../../../activities/context/request.ts";
import { compactionEvents, sessions, storedMessages } from "../../../activities/store/schema/index.ts";
import { loadView } from "../../../activities/store/load-view.ts";
import { takeSequences } from "../../../activities/store/transcript.ts";
import { summaryText } from "../../support/compacting.ts";
import { answer, compactingSession, type Scripted } from "../../support/compacting-session.ts";
import { calls, result, rowsOf } from "../../support/rows.ts";
import type { TestDatabase } from "../../support/test-database.ts";
import { wordsOf } from "../stand/probe-tool.ts";
import { runConfig, type Stand } from "../stand/stand.ts";
import { median } from "../stats.ts";
import type { Figure, Goal } from "../table.ts";

const RESULT_CHARS = 2_048;
/** A window that holds whatever is stored: nothing is left out for its length. */
const WINDOW_TOKENS = 20_000_000;
const INSERTED_AT_ONCE = 1_000;
/** Of few messages; what differs between two of them is what else the machine does. */
const COMPACTIONS = 9;
const LARGE_COMPACTIONS = 3;
/** What the summary's request takes here, and is taken off again: long enough for what a round does in parallel. */
const MODEL_MS = 50;

export async function measureContext(stand: Stand): Promise<Figure[]> {
  const figures: Figure[] = [];
  for (const stored of [100, 1_000, 10_000]) figures.push((await view(stand, stored, stored)).figure);
  figures.push(...(await viewOfActive(stand)));
  for (const stored of [100, 1_000, 10_000]) figures.push(...(await compaction(stand, stored)));
  return figures;
}

/** A session in Postgres of so many messages, half of them results of 2 KB, the first of them replaced already. */
async function storedSession(stand: Stand, stored: number, replaced: number, ...script: Scripted[]) {
  const { db } = stand.store;
  const database: TestDatabase = { url: "", store: stand.store, drop: async () => undefined };
  const session = await compactingSession(database, [], ...script);
  const steps = Array.from({ length: stored / 2 }, (_, step): Message[] => [
    calls("", { id: `call_${step}` }),
    result(`call_${step}`, wordsOf(`result ${step}`, RESULT_CHARS)),
  ]);
  const first = await takeSequences(db, session.id, stored);
  const rows = rowsOf(steps.flat(), first).map(({ tokens, ...row }) => ({
    sessionId: session.id,
    sequence: row.sequence,
    position: row.position,
    epoch: 1,
    step: row.step,
    slot: row.slot,
    role: row.role,
    kind: row.kind,
    content: row.content,
    tokenCount: tokens,
  }));
  for (let at = 0; at < rows.length; at += INSERTED_AT_ONCE)
    await db.insert(storedMessages).values(rows.slice(at, at + INSERTED_AT_ONCE));
  if (replaced > 0) await replace(stand, session.id, first + replaced - 1);
  const settings = runConfig(stand.image);
  const config = {
    ...settings,
    contextWindow: WINDOW_TOKENS,
    context: { ...settings.context, strategy: "threshold-rounds" as const },
  };
  await db.update(sessions).set({ config }).where(eq(sessions.id, session.id));
  // The figures of thousands of fresh rows, as the server's own housekeeping would have them by then.
  await db.execute(sql`vacuum analyze stored_messages`);
  return session;
}

/** As a round leaves it: what it replaced, and the summary behind the last of them. */
async function replace({ store: { db } }: Stand, sessionId: string, last: number): Promise<void> {
  await db.insert(compactionEvents).values({
    sessionId,
    epoch: 1,
    step: 0,
    round: 1,
    trigger: "threshold",
    strategy: "threshold-rounds",
    status: "compacted",
    attempts: [],
    tokensBefore: 0,
    tokensAfter: 0,
    durationMs: 0,
    replaced: `{[2,${last}]}`,
  });
  const content = [{ type: "text" as const, text: summaryText() }];
  await db.insert(storedMessages).values({
    sessionId,
    sequence: await takeSequences(db, sessionId, 1),
    position: last + 0.5,
    epoch: 1,
    step: 0,
    slot: "summary:1",
    role: "assistant",
    kind: "summary",
    content,
    tokenCount: estimateMessage({ role: "assistant", content }),
  });
}

async function view(
  stand: Stand,
  stored: number,
  active: number,
  goal?: Goal,
): Promise<{ readonly figure: Figure; readonly ms: number }> {
  const { db } = stand.store;
  const { id } = await storedSession(stand, stored, stored - active);
  const repeats = active > 1_000 ? 8 : 30;
  const [load, build, size]: [number[], number[], number[]] = [[], [], []];
  for (let time = 0; time < repeats; time += 1) {
    const began = performance.now();
    const rows = await loadView(db, id);
    const loaded = performance.now();
    await buildMessages(db, rows, ["text"]);
    const built = performance.now();
    viewSize({ rows, prefixTokens: 3_000, ratio: 1, windowTokens: WINDOW_TOKENS });
    load.push(loaded - began);
    build.push(built - loaded);
    size.push(performance.now() - built);
  }
  const ms = median(load) + median(build) + median(size);
  const fastest = load.map((each, at) => each + (build[at] ?? 0) + (size[at] ?? 0));
  const note = `load ${median(load).toFixed(1)}, build ${median(build).toFixed(2)}, size ${median(size).toFixed(2)}; fastest ${Math.min(...fastest).toFixed(1)}`;
  const name =
    stored === active ? `request of ${stored} messages` : `request of ${active} of ${stored} stored messages`;
  return {
    ms,
    figure: { name, value: ms, unit: "ms", n: repeats, ...(goal === undefined ? {} : { goal }), note },
  };
}

/** What is replaced must cost nothing any more. */
async function viewOfActive(stand: Stand): Promise<Figure[]> {
  const alone = await view(stand, 500, 500, { of: "value", atMost: 15 });
  const among = await view(stand, 10_000, 500, { of: "ratio", atMost: 1.3 });
  const note = `${among.figure.note ?? ""}; ratio to 500 messages with none replaced`;
  return [alone.figure, { ...among.figure, ratio: among.ms / alone.ms, note }];
}

async function compaction(stand: Stand, stored: number): Promise<Figure[]> {
  const times: number[] = [];
  const bytes: number[] = [];
  const log: number[] = [];
  let transactions = 0;
  const count = stored > 1_000 ? LARGE_COMPACTIONS : COMPACTIONS;
  // The first one warms up what a worker has warm.
  for (let time = 0; time <= count; time += 1) {
    let modelMs = 0;
    const session = await storedSession(stand, stored, 0, async () => {
      const asked = performance.now();
      await delay(MODEL_MS);
      modelMs = performance.now() - asked;
      return answer(summaryText());
    });
    const before = await diskOf(stand);
    const began = performance.now();
    const facts = await session.summarize(1);
    const ms = performance.now() - began - modelMs;
    if (facts.kind !== "compacted") throw new Error(`The round came to ${facts.kind}.`);
    if (time === 0) continue;
    const after = await diskOf(stand);
    times.push(ms);
    bytes.push(after.tables - before.tables);
    log.push(after.log - before.log);
    transactions = Math.max(transactions, await writersOf(stand, session.id));
  }
  return [
    {
      name: `compaction of ${stored} messages, apart from its model call`,
      value: median(times),
      unit: "ms",
      n: times.length,
      ...(stored === 1_000 ? { goal: { of: "value", atMost: 40 } as const } : {}),
      note:
        `fastest ${Math.min(...times).toFixed(1)}; transactions that marked, summed up and logged: ${transactions}; ` +
        `tables grew by ${kilobytes(median(bytes))}, the write-ahead log by ${kilobytes(median(log))}`,
    },
  ];
}

async function diskOf({ store }: Stand): Promise<{ tables: number; log: number }> {
  const { rows } = await store.db.execute<{ tables: string; log: string }>(sql`select
    pg_total_relation_size('stored_messages') + pg_total_relation_size('compaction_events') as tables,
    pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0') as log`);
  const [row] = rows;
  return { tables: Number(row?.tables), log: Number(row?.log) };
}

/** How many transactions wrote what a round left. */
async function writersOf({ store }: Stand, id: string): Promise<number> {
  const { rows } = await store.db.execute<{ writers: number }>(sql`
    select count(distinct xmin::text)::int as writers from
      (select xmin from stored_messages where session_id = ${id} and kind = 'summary'
       union all select xmin from compaction_events where session_id = ${id}) rows`);
  return rows[0]?.writers ?? 0;
}

function kilobytes(bytes: number): string {
  return `${(bytes / 1_000).toFixed(0)} KB`;
}
