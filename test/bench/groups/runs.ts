/** A session that outgrows many histories and a small window: are its last steps as quick as its first, is every run small? */
import { sql } from "drizzle-orm";
import { gaps, quantile } from "../stats.ts";
import { SMALL_MODEL, SMALL_WINDOW_TOKENS } from "../stand/plan.ts";
import { runAgent } from "../stand/runs.ts";
import type { Stand } from "../stand/stand.ts";
import { atMost, type Figure, ratioAtMost } from "../table.ts";
import type { Scale } from "./group.ts";

/** Steps at either end that are compared; fewer in a short session. */
const END_STEPS = 500;
const RESULT_CHARS = 400;

/** Its goals are for a session of 5,000 steps. */
export async function measureRuns(stand: Stand, scale: Scale): Promise<Figure[]> {
  const steps = scale.manySteps;
  const config: NonNullable<Parameters<typeof runAgent>[2]>["config"] = (settings) => ({
    ...settings,
    model: `openai/${SMALL_MODEL}`,
    contextWindow: SMALL_WINDOW_TOKENS,
    input: ["text"],
    limits: { ...settings.limits, maxSteps: steps + 1, ...(steps < 5_000 ? { maxHistoryEvents: 500 } : {}) },
  });
  const plan = { steps, calls: 1, tool: "probe", chars: RESULT_CHARS } as const;
  const { id, starts } = await runAgent(stand, plan, { config });
  const between = gaps(starts);
  const end = Math.min(END_STEPS, Math.floor(steps / 4));
  const [first, last] = [between.slice(0, end), between.slice(-end)];
  const sizes = await sizesOf(stand, id);
  const rounds = await stand.model.summaries(id);
  const requests = await requestsOf(stand, id);
  return [
    {
      name: `last ${end} of ${steps} steps against the first ${end}, p95`,
      value: quantile(last, 0.95),
      unit: "ms",
      n: end,
      ratio: quantile(last, 0.95) / quantile(first, 0.95),
      goal: ratioAtMost(1.15),
      note: `summaries ${rounds}; runs ${sizes.length}; p50 of each tenth: ${tenths(between).join(" ")} ms`,
    },
    {
      name: `requests refused, of a window of ${SMALL_WINDOW_TOKENS.toLocaleString("en")} tokens`,
      value: requests.refused,
      unit: "",
      n: requests.all,
      goal: atMost(0),
      note: `largest request ${requests.largest.toLocaleString("en")} tokens`,
    },
    {
      name: "largest run: events",
      value: Math.max(...sizes.map(({ events }) => events)),
      unit: "",
      n: sizes.length,
      goal: atMost(4_096),
    },
    {
      name: "largest run: history",
      value: Math.max(...sizes.map(({ bytes }) => bytes)) / 1_000,
      unit: "KB",
      n: sizes.length,
      goal: atMost(1_000),
    },
  ];
}

/** They distinguish growth from a machine that was busy for a while. */
function tenths(between: readonly number[]): string[] {
  const size = Math.ceil(between.length / 10);
  return Array.from({ length: 10 }, (_, at) =>
    quantile(between.slice(at * size, (at + 1) * size), 0.5).toFixed(0),
  );
}

async function requestsOf({ store }: Stand, id: string) {
  const { rows } = await store.db.execute<{ refused: number; all: number; largest: number }>(sql`
    select count(*)::int as all, count(*) filter (where status <> 'kept')::int as refused,
    max(input_tokens)::int as largest from model_calls where session_id = ${id}`);
  return rows[0] ?? { refused: Number.NaN, all: 0, largest: 0 };
}

async function sizesOf({ store, client }: Stand, id: string) {
  const { rows } = await store.db.execute<{ run: string }>(
    sql`select run_id as run from runs where session_id = ${id} order by ordinal`,
  );
  return Promise.all(
    rows.map(async ({ run }) => {
      const { raw } = await client.workflow.getHandle(id, run).describe();
      const info = raw.workflowExecutionInfo;
      return { events: Number(info?.historyLength ?? 0), bytes: Number(info?.historySizeBytes ?? 0) };
    }),
  );
}
