/** What a stopped step leaves: the text so far and the calls that were cut off. Writes nothing. */
import { and, desc, eq, gte, inArray, sql } from "drizzle-orm";
import { isLive } from "./live-line.ts";
import type { Queryable } from "./db.ts";
import { storedMessages, toolCalls } from "./schema/index.ts";

export interface Kept {
  /** What was in progress and is kept. */
  readonly kept: "partial text" | "tools in progress" | "nothing";
  /** The step it belongs to; null for nothing. */
  readonly step: number | null;
  /** The model's text up to the stop, marked as interrupted. */
  readonly text: string | null;
  readonly tools: readonly { readonly name: string; readonly outcome: string }[];
}

const NOTHING: Kept = { kept: "nothing", step: null, text: null, tools: [] };

/** The time by the database's clock, as `readKept` expects it. */
export async function databaseNow(db: Queryable): Promise<Date> {
  const { rows } = await db.execute<{ now: string }>(sql`select clock_timestamp()::text as now`);
  return new Date(rows[0]?.now ?? 0);
}

/** What was kept of the step that was stopped after the given time of the database's clock. */
export async function readKept(db: Queryable, sessionId: string, since: Date): Promise<Kept> {
  const [said] = await db
    .select({ step: storedMessages.step, content: storedMessages.content })
    .from(storedMessages)
    .where(
      and(
        isLive(storedMessages, sessionId),
        eq(storedMessages.slot, "assistant"),
        gte(storedMessages.createdAt, since),
        sql`${storedMessages.meta}->>'finish' = 'interrupted'`,
      ),
    )
    .orderBy(desc(storedMessages.sequence))
    .limit(1);
  if (said) return { ...NOTHING, kept: "partial text", step: said.step, text: textOf(said.content) };
  const calls = await db
    .select({ step: toolCalls.step, name: toolCalls.name, outcome: toolCalls.status })
    .from(toolCalls)
    .where(
      and(
        isLive(toolCalls, sessionId),
        gte(toolCalls.finishedAt, since),
        inArray(toolCalls.status, ["interrupted", "unknown"]),
      ),
    )
    .orderBy(toolCalls.sequence);
  const [first] = calls;
  if (!first) return NOTHING;
  const tools = calls.map(({ name, outcome }) => ({ name, outcome }));
  return { ...NOTHING, kept: "tools in progress", step: first.step, tools };
}

function textOf(content: unknown): string {
  if (!Array.isArray(content)) return "";
  return content
    .map((part: { type?: string; text?: string }) => (part.type === "text" ? (part.text ?? "") : ""))
    .join("");
}
