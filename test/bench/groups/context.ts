/** What the transcript costs: loading it for a request, and replacing it by a summary that is there at once. */
import { eq, sql } from "drizzle-orm";
import { viewSize } from "../../../activities/context/size.ts";
import type { Message } from "../../../activities/context/message.ts";
import { buildMessages } from "../../../activities/model/request.ts";
import { sessions } from "../../../activities/store/schema.ts";
import { loadView } from "../../../activities/store/transcript.ts";
import { summaryText } from "../../support/compacting.ts";
import { compactingSession } from "../../support/compacting-session.ts";
import { calls, result } from "../../support/rows.ts";
import type { TestDatabase } from "../../support/test-database.ts";
import { wordsOf } from "../stand/probe-tool.ts";
import { runConfig, type Stand } from "../stand/stand.ts";
import { median } from "../stats.ts";
import type { Figure } from "../table.ts";
import type { Scale } from "./group.ts";

const RESULT_CHARS = 2_048;
const VIEW_MESSAGES = 500;
const COMPACTED_MESSAGES = 1_000;
const VIEW_REPEATS = 30;
const MAX_COMPACTIONS = 5;

export async function measureContext(stand: Stand, scale: Scale): Promise<Figure[]> {
  return [...(await view(stand)), ...(await compaction(stand, scale))];
}

/** A session in Postgres of so many messages, half of them results of 2 KB, in a window that holds them all. */
async function storedSession(stand: Stand, messages: number, ...script: string[]) {
  const steps = Array.from({ length: messages / 2 }, (_, step): Message[] => [
    calls("", { id: `call_${step}` }),
    result(`call_${step}`, wordsOf(`result ${step}`, RESULT_CHARS)),
  ]);
  const database: TestDatabase = { url: "", store: stand.store, drop: async () => undefined };
  const session = await compactingSession(database, steps.flat(), ...script);
  const settings = runConfig(stand.image);
  const config = {
    ...settings,
    contextWindow: 1_000_000,
    context: { ...settings.context, strategy: "threshold-rounds" as const },
  };
  await stand.store.db.update(sessions).set({ config }).where(eq(sessions.id, session.id));
  return session;
}

async function view(stand: Stand): Promise<Figure[]> {
  const { db } = stand.store;
  const { id } = await storedSession(stand, VIEW_MESSAGES);
  const [load, build, size]: [number[], number[], number[]] = [[], [], []];
  for (let time = 0; time < VIEW_REPEATS; time += 1) {
    const began = performance.now();
    const rows = await loadView(db, id);
    const loaded = performance.now();
    await buildMessages(db, rows, ["text"]);
    const built = performance.now();
    viewSize({ rows, prefixTokens: 3_000, ratio: 1, windowTokens: 1_000_000 });
    load.push(loaded - began);
    build.push(built - loaded);
    size.push(performance.now() - built);
  }
  const total = median(load) + median(build) + median(size);
  const parts = `load ${median(load).toFixed(1)}, build ${median(build).toFixed(2)}, size ${median(size).toFixed(2)}`;
  return [
    { name: `view of ${VIEW_MESSAGES} messages`, value: total, unit: "ms", n: VIEW_REPEATS, note: parts },
  ];
}

async function compaction(stand: Stand, scale: Scale): Promise<Figure[]> {
  const times: number[] = [];
  let transactions = 0;
  const count = Math.min(MAX_COMPACTIONS, scale.repeats);
  // The first one warms up what a worker has warm.
  for (let time = 0; time <= count; time += 1) {
    const session = await storedSession(stand, COMPACTED_MESSAGES, summaryText());
    // The figures of thousands of fresh rows, as the server's own housekeeping would have them by then.
    await stand.store.db.execute(sql`analyze messages`);
    const began = performance.now();
    const facts = await session.summarize(1);
    const ms = performance.now() - began;
    if (facts.kind !== "compacted") throw new Error(`The round came to ${facts.kind}.`);
    if (time === 0) continue;
    times.push(ms);
    const { rows } = await stand.store.db.execute<{
      writers: number;
    }>(sql`select count(distinct xmin::text)::int as writers from
      (select xmin from messages where session_id = ${session.id} and (is_compacted or kind = 'summary')
       union all select xmin from compaction_events where session_id = ${session.id}) rows`);
    transactions = Math.max(transactions, rows[0]?.writers ?? 0);
  }
  return [
    {
      name: `compaction of ${COMPACTED_MESSAGES} messages, apart from its model call`,
      value: median(times),
      unit: "ms",
      n: times.length,
      goal: { of: "value", atMost: 20, laterIssue: 4 },
      note: `transactions that marked, summed up and logged: ${transactions}; the view loaded twice`,
    },
  ];
}
