/** A long session: do late steps cost what early ones did, in time, in history, in the database? */
import { sql } from "drizzle-orm";
import { gaps, median } from "../stats.ts";
import { historyBytes, runAgent } from "../stand/runs.ts";
import type { Stand } from "../stand/stand.ts";
import { atMost, type Figure, middleOf, ratioAtMost } from "../table.ts";
import type { Scale } from "./group.ts";

/** Steps on either side of the one that is looked at. */
const AROUND = 8;
const EARLY = 10;
const RESULT_CHARS = 2_048;
/** Of the short session whose history is compared with the long one's. */
const SHORT_STEPS = 20;

interface Stored {
  /** All our tables with their indexes. */
  readonly tables: number;
  /** What the messages hold. */
  readonly messages: number;
  /** How far the write-ahead log has come. */
  readonly wal: number;
}

export async function measureGrowth(stand: Stand, scale: Scale): Promise<Figure[]> {
  const steps = scale.lateStep + AROUND;
  const before = await stored(stand);
  const plan = { steps, calls: 1, tool: "probe", chars: RESULT_CHARS } as const;
  const { id, starts } = await runAgent(stand, plan);
  const after = await stored(stand);
  stand.say(`session of ${steps} steps done`);
  const early = near(starts, EARLY);
  const late = near(starts, scale.lateStep);
  const rounds = await stand.model.summaries(id);
  const small = { ...plan, steps: SHORT_STEPS, chars: 50 };
  const history = await historyPerStep(stand, small);
  const large = await historyPerStep(stand, { ...small, chars: 6_000 });
  const tables = after.tables - before.tables;
  const messages = after.messages - before.messages;
  return [
    middleOf(`step ${scale.lateStep} against step ${EARLY}`, late, {
      ratio: median(late) / median(early),
      goal: ratioAtMost(1.15),
      note: `step ${EARLY}: ${median(early).toFixed(1)} ms; summaries ${rounds}; ratio to step ${EARLY}`,
    }),
    {
      name: "history a step",
      value: history,
      unit: "bytes",
      n: SHORT_STEPS,
      goal: atMost(2_200),
      note: `results of 6,000 characters: ${large.toFixed(0)} bytes`,
    },
    {
      name: "own tables against the messages' bytes",
      value: tables / steps / 1_000,
      unit: "KB a step",
      n: steps,
      ratio: tables / messages,
      goal: ratioAtMost(1.6),
      note: `messages ${(messages / steps / 1_000).toFixed(2)} KB a step; ratio to them`,
    },
    {
      name: "all durable bytes of a 2 KB step",
      value: (tables / steps + history) / 1_000,
      unit: "KB",
      n: steps,
      goal: atMost(9),
      note: `tables and history; write-ahead log ${((after.wal - before.wal) / steps / 1_000).toFixed(1)} KB`,
    },
  ];
}

function near(starts: readonly number[], step: number): number[] {
  return gaps(starts.slice(Math.max(0, step - 1 - AROUND), step + AROUND));
}

/** In bytes, the difference of two sessions, so that opening and closing do not count. */
async function historyPerStep(stand: Stand, plan: Parameters<typeof runAgent>[1]): Promise<number> {
  const long = await historyBytes(stand, (await runAgent(stand, { ...plan, steps: 2 * plan.steps })).id);
  const short = await historyBytes(stand, (await runAgent(stand, plan)).id);
  return (long - short) / plan.steps;
}

async function stored({ store }: Stand): Promise<Stored> {
  const { rows } = await store.db.execute<Record<keyof Stored, string>>(sql`select
    (select sum(pg_total_relation_size(c.oid)) from pg_class c join pg_namespace n on n.oid = c.relnamespace
      where n.nspname = 'public' and c.relkind = 'r') as tables,
    (select coalesce(sum(octet_length(content::text)), 0) from messages) as messages,
    pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0') as wal`);
  const [row] = rows;
  return { tables: Number(row?.tables), messages: Number(row?.messages), wal: Number(row?.wal) };
}
