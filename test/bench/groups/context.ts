/** What the transcript costs: loading it for a request, and replacing it by a summary that is there at once. */
import { setTimeout as delay } from "node:timers/promises";
import { eq, sql } from "drizzle-orm";
import type { Message } from "../../../activities/contract/message.ts";
import { viewSize } from "../../../activities/transcript/size.ts";
import { estimateMessage } from "../../../activities/contract/request-size.ts";
import { buildMessages } from "../../../activities/context/request.ts";
import { compactionEvents, sessions, storedMessages } from "../../../activities/store/schema/index.ts";
import { loadView } from "../../../activities/store/load-view.ts";
import { takeSequences } from "../../../activities/store/transcript.ts";
import { summaryText } from "../../support/compacting.ts";
import { answer, compactingSession, type Scripted } from "../../support/compacting-session.ts";
import { calls, result, rowsOf } from "../../support/rows.ts";
import { configOf } from "../../support/run-config.ts";
import type { TestDatabase } from "../../support/test-database.ts";
import { wordsOf } from "../stand/probe-tool.ts";
import type { Stand } from "../stand/stand.ts";
import { median } from "../stats.ts";
import { atMost, type Figure, type Goal, middleOf, ratioAtMost } from "../table.ts";

const RESULT_CHARS = 2_048;
/** A window that holds whatever is stored: nothing is left out for its length. */
const WINDOW_TOKENS = 20_000_000;
const INSERTED_AT_ONCE = 1_000;
const VIEWS = 30;
/** Of few messages; what differs between two of them is what else the machine does. */
const COMPACTIONS = 9;
const LARGE_COMPACTIONS = 3;
/** What the summary's request takes here, and is taken off again: long enough for what a round does in parallel. */
const MODEL_MS = 50;

export async function measureContext(stand: Stand): Promise<Figure[]> {
  const alone = await view(stand, 500, 500);
  // What is replaced must cost nothing any more.
  const among = await view(stand, 10_000, 500);
  return [
    middleOf("request of 500 messages", alone.ms, { goal: atMost(15), note: alone.note }),
    middleOf("request of 500 of 10,000 stored messages", among.ms, {
      ratio: median(among.ms) / median(alone.ms),
      goal: ratioAtMost(1.3),
      note: `${among.note}; ratio to 500 messages with none replaced`,
    }),
    await compaction(stand, 1_000, atMost(40)),
    await compaction(stand, 10_000),
  ];
}

/** A session in Postgres of so many messages, half of them results of 2 KB, the first of them replaced already. */
async function storedSession({ store }: Stand, stored: number, replaced: number, ...script: Scripted[]) {
  const { db } = store;
  const database: TestDatabase = { url: "", store, drop: async () => undefined };
  const session = await compactingSession(database, [], ...script);
  const steps = Array.from({ length: stored / 2 }, (_, step): Message[] => [
    calls("", { id: `call_${step}` }),
    result(`call_${step}`, wordsOf(`result ${step}`, RESULT_CHARS)),
  ]);
  const first = await takeSequences(db, session.id, stored);
  const rows = rowsOf(steps.flat(), first).map(({ tokens, ...row }) => ({
    ...row,
    sessionId: session.id,
    epoch: 1,
    tokenCount: tokens,
  }));
  for (let at = 0; at < rows.length; at += INSERTED_AT_ONCE)
    await db.insert(storedMessages).values(rows.slice(at, at + INSERTED_AT_ONCE));
  if (replaced > 0) await replace(db, session.id, first + replaced - 1);
  const config = configOf({ context: { strategy: "threshold-rounds" } }, { contextWindow: WINDOW_TOKENS });
  await db.update(sessions).set({ config }).where(eq(sessions.id, session.id));
  // The figures of thousands of fresh rows, as the server's own housekeeping would have them by then.
  await db.execute(sql`vacuum analyze stored_messages`);
  return session;
}

/** As a round leaves it: what it replaced, and the summary behind the last of them. */
async function replace(db: Stand["store"]["db"], sessionId: string, last: number): Promise<void> {
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

async function view(stand: Stand, stored: number, active: number) {
  const { store } = stand;
  const { id } = await storedSession(stand, stored, stored - active);
  const [load, build, size]: [number[], number[], number[]] = [[], [], []];
  for (let time = 0; time < VIEWS; time += 1) {
    const began = performance.now();
    const rows = await loadView(store.db, id);
    const loaded = performance.now();
    await buildMessages(store.db, rows, ["text"]);
    const built = performance.now();
    viewSize({
      rows,
      prefixTokens: 3_000,
      ratio: 1,
      oneRequestTokens: 4 * WINDOW_TOKENS,
      pruneProtectTokens: 40_000,
    });
    load.push(loaded - began);
    build.push(built - loaded);
    size.push(performance.now() - built);
  }
  const ms = load.map((loadMs, at) => loadMs + (build[at] ?? 0) + (size[at] ?? 0));
  const note = `load ${median(load).toFixed(1)}, build ${median(build).toFixed(2)}, size ${median(size).toFixed(2)}; fastest ${Math.min(...ms).toFixed(1)}`;
  return { ms, note };
}

async function compaction(stand: Stand, stored: number, goal?: Goal): Promise<Figure> {
  const times: number[] = [];
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
    const began = performance.now();
    const facts = await session.summarize(1);
    const ms = performance.now() - began - modelMs;
    if (facts.kind !== "compacted") throw new Error(`The round came to ${facts.kind}.`);
    if (time > 0) times.push(ms);
  }
  const name = `compaction of ${stored} messages, apart from its model call`;
  return middleOf(name, times, { goal, note: `fastest ${Math.min(...times).toFixed(1)}` });
}
