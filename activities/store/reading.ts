/** What clients read: sessions with their figures, and the whole of one session. Writes nothing. */
import { and, asc, desc, eq, inArray, isNotNull, isNull, sql } from "drizzle-orm";
import type { SessionStatus } from "../contract.ts";
import type { Database, Queryable } from "./db.ts";
import type { EventData, EventType } from "./event.ts";
import {
  compactionEvents,
  cursors,
  events,
  guidance,
  messages,
  modelCalls,
  sessions,
  storedMessages,
  toolCalls,
} from "./schema.ts";

export interface SessionRow {
  readonly id: string;
  readonly status: SessionStatus;
  readonly task: string;
  readonly config: unknown;
  readonly epoch: number;
  readonly runId: string | null;
  readonly result: string | null;
  readonly error: unknown;
  readonly createdAt: Date;
  readonly updatedAt: Date;
  readonly endedAt: Date | null;
}

/** Figures of a session, from its rows alone: right without any worker. */
export interface SessionFigures {
  /** The newest step of the live line that began. */
  readonly step: number;
  readonly compactionRounds: number;
  readonly usage: {
    readonly input: number;
    readonly cached: number;
    readonly output: number;
    readonly reasoning: number;
    readonly calls: number;
  };
  /** Undefined before the first step. Tokens. */
  readonly context: { readonly used: number; readonly estimated: boolean } | undefined;
  readonly lastSeq: number;
}

export interface WaitingMessage {
  readonly id: string;
  readonly text: string;
  readonly queuedAt: string;
}

const sessionColumns = {
  id: sessions.id,
  status: sql<SessionStatus>`${sessions.status}`,
  task: sessions.task,
  config: sessions.config,
  epoch: sessions.epoch,
  runId: sessions.runId,
  result: sessions.result,
  error: sessions.error,
  createdAt: sessions.createdAt,
  updatedAt: sessions.updatedAt,
  endedAt: sessions.endedAt,
};

export async function findSession(db: Database, id: string): Promise<SessionRow | undefined> {
  const [row] = await db.select(sessionColumns).from(sessions).where(eq(sessions.id, id));
  return row;
}

/** Newest first. */
export async function listSessions(
  db: Database,
  options: { readonly limit: number; readonly status?: string },
): Promise<SessionRow[]> {
  return db
    .select(sessionColumns)
    .from(sessions)
    .where(options.status === undefined ? undefined : eq(sessions.status, options.status))
    .orderBy(desc(sessions.createdAt), desc(sessions.id))
    .limit(options.limit);
}

/** Figures of several sessions with a fixed number of queries; each id has an entry. */
export async function readFigures(
  db: Database,
  ids: readonly string[],
): Promise<Map<string, SessionFigures>> {
  if (ids.length === 0) return new Map();
  const list = [...ids];
  const usage = await db
    .select({
      id: modelCalls.sessionId,
      input: sql<number>`coalesce(sum(${modelCalls.inputTokens}), 0)::float8`,
      cached: sql<number>`coalesce(sum(${modelCalls.cachedTokens}), 0)::float8`,
      output: sql<number>`coalesce(sum(${modelCalls.outputTokens}), 0)::float8`,
      reasoning: sql<number>`coalesce(sum(${modelCalls.reasoningTokens}), 0)::float8`,
      calls: sql<number>`count(*)::int`,
    })
    .from(modelCalls)
    .where(inArray(modelCalls.sessionId, list))
    .groupBy(modelCalls.sessionId);
  const steps = await db
    .select({ id: storedMessages.sessionId, step: sql<number>`max(${storedMessages.step})::int` })
    .from(storedMessages)
    .where(and(inArray(storedMessages.sessionId, list), isNull(storedMessages.supersededEpoch)))
    .groupBy(storedMessages.sessionId);
  const rounds = await db
    .select({ id: compactionEvents.sessionId, rounds: sql<number>`max(${compactionEvents.round})::int` })
    .from(compactionEvents)
    .where(
      and(
        inArray(compactionEvents.sessionId, list),
        eq(compactionEvents.status, "compacted"),
        isNull(compactionEvents.supersededEpoch),
      ),
    )
    .groupBy(compactionEvents.sessionId);
  const seqs = await db
    .select({ id: cursors.sessionId, seq: cursors.eventSeq })
    .from(cursors)
    .where(inArray(cursors.sessionId, list));
  const latest = await latestSizes(db, list);
  const find = <Row extends { id: string }>(rows: Row[], id: string) => rows.find((row) => row.id === id);
  return new Map(
    ids.map((id): [string, SessionFigures] => {
      const used = find(usage, id);
      return [
        id,
        {
          step: Math.max(find(steps, id)?.step ?? 0, latest.get(id)?.step ?? 0),
          compactionRounds: find(rounds, id)?.rounds ?? 0,
          usage: {
            input: used?.input ?? 0,
            cached: used?.cached ?? 0,
            output: used?.output ?? 0,
            reasoning: used?.reasoning ?? 0,
            calls: used?.calls ?? 0,
          },
          context: latest.get(id)?.context,
          lastSeq: find(seqs, id)?.seq ?? 0,
        },
      ];
    }),
  );
}

/** The newest event that tells the context's size, of each session. */
async function latestSizes(db: Database, ids: readonly string[]) {
  const sizes = new Map<string, { step: number; context: NonNullable<SessionFigures["context"]> }>();
  const types = ["step:started", "llm:response", "context:compressed"] satisfies EventType[];
  const rows = await db
    .selectDistinctOn([events.sessionId, events.type], {
      sessionId: events.sessionId,
      type: events.type,
      seq: events.seq,
      step: events.step,
      data: events.data,
    })
    .from(events)
    .where(and(inArray(events.sessionId, [...ids]), inArray(events.type, types)))
    .orderBy(events.sessionId, events.type, desc(events.seq));
  rows.sort((a, b) => a.seq - b.seq);
  for (const row of rows) {
    const before = sizes.get(row.sessionId);
    const step = Math.max(before?.step ?? 0, row.step);
    const context = sizeOf(row.type, row.data) ?? before?.context;
    if (context === undefined) continue;
    sizes.set(row.sessionId, { step, context });
  }
  return sizes;
}

function sizeOf(type: string, data: unknown): SessionFigures["context"] {
  switch (type) {
    case "step:started": {
      const { estimatedInput, estimated } = data as EventData["step:started"];
      return { used: estimatedInput, estimated };
    }
    case "llm:response": {
      const { contextUsed } = data as EventData["llm:response"];
      return { used: contextUsed, estimated: false };
    }
    case "context:compressed": {
      const { tokensAfter, status } = data as EventData["context:compressed"];
      return status !== "failed" ? { used: tokensAfter, estimated: true } : undefined;
    }
    default:
      return undefined;
  }
}

/** Messages that wait, as far as rows tell: those told of as queued and not yet taken, and those parked. */
export async function readWaiting(db: Database, sessionId: string): Promise<WaitingMessage[]> {
  const told = await db
    .select({ type: events.type, data: events.data, at: events.at })
    .from(events)
    .where(
      and(
        eq(events.sessionId, sessionId),
        inArray(events.type, ["message:queued", "message:dequeued"] satisfies EventType[]),
      ),
    )
    .orderBy(asc(events.seq));
  const waiting = new Map<string, WaitingMessage>();
  // Who sends tells afterwards, so a quick step may have taken a message before it was told of.
  const taken = new Set(
    told.flatMap(({ type, data }) =>
      type === "message:dequeued" ? (data as EventData["message:dequeued"]).ids : [],
    ),
  );
  for (const { type, data, at } of told) {
    if (type !== "message:queued") continue;
    const { id, excerpt } = data as EventData["message:queued"];
    if (!taken.has(id)) waiting.set(id, { id, text: excerpt, queuedAt: at.toISOString() });
  }
  const parked = await db
    .select({ id: guidance.id, parts: guidance.parts, queuedAt: guidance.queuedAt })
    .from(guidance)
    .where(and(eq(guidance.sessionId, sessionId), isNull(guidance.deliveredSequence)))
    .orderBy(asc(guidance.ordinal));
  for (const { id, parts, queuedAt } of parked) waiting.set(id, { id, text: textOf(parts), queuedAt });
  return [...waiting.values()];
}

function textOf(parts: unknown): string {
  if (!Array.isArray(parts)) return "";
  return parts
    .map((part: { type?: string; text?: string; mediaType?: string }) =>
      part.type === "text" ? (part.text ?? "") : `[${part.mediaType ?? "file"}]`,
    )
    .join("\n");
}

/** Everything of one session, superseded and compacted rows too, in order. */
export async function readWhole(db: Database, sessionId: string) {
  return {
    messages: await db
      .select()
      .from(messages)
      .where(eq(messages.sessionId, sessionId))
      .orderBy(asc(messages.sequence)),
    toolCalls: await db
      .select()
      .from(toolCalls)
      .where(eq(toolCalls.sessionId, sessionId))
      .orderBy(asc(toolCalls.sequence)),
    compactionEvents: await db
      .select()
      .from(compactionEvents)
      .where(eq(compactionEvents.sessionId, sessionId))
      .orderBy(asc(compactionEvents.id)),
    modelCalls: await db
      .select()
      .from(modelCalls)
      .where(eq(modelCalls.sessionId, sessionId))
      .orderBy(asc(modelCalls.id)),
  };
}

/** One request's input as it was estimated and as it was billed, in tokens. */
export interface CallEstimate {
  readonly step: number;
  readonly estimated: number;
  readonly actual: number;
  /** True where the estimate had no bill to stand on. */
  readonly pure: boolean;
}

/** The last billed requests of steps, newest first. */
export async function recentCalls(db: Queryable, sessionId: string, limit: number): Promise<CallEstimate[]> {
  return db
    .select({
      step: modelCalls.step,
      estimated: modelCalls.estimatedInput,
      actual: sql<number>`${modelCalls.inputTokens}`,
      pure: modelCalls.estimatePure,
    })
    .from(modelCalls)
    .where(
      and(
        eq(modelCalls.sessionId, sessionId),
        eq(modelCalls.purpose, "step"),
        isNotNull(modelCalls.inputTokens),
      ),
    )
    .orderBy(desc(modelCalls.id))
    .limit(limit);
}
