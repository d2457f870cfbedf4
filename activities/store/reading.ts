/** Read-only queries for clients: sessions with their figures, and the whole of one session. */
import { and, asc, desc, eq, inArray, isNotNull, isNull, or, sql, gt } from "drizzle-orm";
import type { SessionBill } from "../config/cost.ts";
import type { SessionStatus } from "../contract/activities.ts";
import type { TokenRatio } from "../contract/request-size.ts";
import type { Database, Queryable } from "./db.ts";
import { hasWaitingDelegate } from "./delegations.ts";
import type { EventType } from "./event.ts";
import { costColumns, sessionBill, usageColumns } from "./model-calls.ts";
import {
  compactionEvents,
  cursors,
  delegations,
  events,
  messages,
  modelCalls,
  sessions,
  storedMessages,
  tokenRatios,
  toolCalls,
  verifications,
  waits,
} from "./schema/index.ts";
import { sessionWaits, type SessionWait } from "./waits.ts";
import { equalsAny } from "./statements.ts";
import { isPromptOfSession, promptText } from "./stored-settings.ts";

export interface SessionRow {
  readonly id: string;
  readonly status: SessionStatus;
  readonly task: string;
  readonly config: unknown;
  readonly epoch: number;
  readonly runId: string | null;
  readonly result: string | null;
  readonly error: unknown;
  /** What `verify` came to in the newest run; null if nothing was verified. */
  readonly verified: string | null;
  readonly createdAt: Date;
  readonly updatedAt: Date;
  readonly endedAt: Date | null;
  /** For a delegate: its parent, and the call as the ledger names it. */
  readonly parentId: string | null;
  readonly parentCall: string | null;
  /** Who started it, if the client reported it. */
  readonly owner: string | null;
}

/** Figures of a session, computed from its rows alone: correct even if no worker runs. */
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
  readonly bill: SessionBill;
  readonly lastSeq: number;
  /** ISO time at which its failed request is made again; null if none waits. */
  readonly waitsUntil: string | null;
  /** What a person or the model's own wait keeps it for; null if nothing does. */
  readonly wait: SessionWait | null;
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
  verified: sessions.verified,
  createdAt: sessions.createdAt,
  updatedAt: sessions.updatedAt,
  endedAt: sessions.endedAt,
  parentId: sessions.parentId,
  parentCall: sessions.parentCall,
  owner: sessions.owner,
};

export async function findSessionRow(db: Database, id: string): Promise<SessionRow | undefined> {
  const [row] = await db.select(sessionColumns).from(sessions).where(eq(sessions.id, id));
  return row;
}

/** Ids that begin with `prefix`, newest first. A delegate matches only if the prefix is longer than its parent's id. */
export async function idsWithPrefix(db: Database, prefix: string, limit: number): Promise<string[]> {
  const rows = await db
    .select({ id: sessions.id })
    .from(sessions)
    .where(
      sql`starts_with(${sessions.id}, ${prefix}) and coalesce(length(${sessions.parentId}), -1) < length(${prefix}::text)`,
    )
    .orderBy(desc(sessions.createdAt), desc(sessions.id))
    .limit(limit);
  return rows.map(({ id }) => id);
}

export interface Listing {
  readonly limit: number;
  readonly status?: string;
  /** Delegates too. */
  readonly all?: boolean;
  /** Only the delegates of this session. */
  readonly parent?: string;
  /** Only sessions of this person and those without an owner; `all` lists everybody's. */
  readonly owner?: string | undefined;
}

/** Newest first. */
export async function listSessions(db: Database, listing: Listing): Promise<SessionRow[]> {
  const { limit, status, all, parent, owner } = listing;
  const ofOwner = owner === undefined ? [] : [or(eq(sessions.owner, owner), isNull(sessions.owner))];
  const isAmong = all === true ? undefined : and(isNull(sessions.parentId), ...ofOwner);
  return db
    .select(sessionColumns)
    .from(sessions)
    .where(
      and(
        status === undefined
          ? undefined
          : or(eq(sessions.status, status), status === "waiting" ? hasWaitingDelegate : undefined),
        parent === undefined ? isAmong : eq(sessions.parentId, parent),
      ),
    )
    .orderBy(desc(sessions.createdAt), desc(sessions.id))
    .limit(limit);
}

/** Figures of several sessions with a fixed number of queries; each id has an entry. */
export async function readFigures(
  db: Database,
  ids: readonly string[],
): Promise<Map<string, SessionFigures>> {
  if (ids.length === 0) return new Map();
  const usage = byId(await usageRows(db, ids));
  const steps = byId(await stepRows(db, ids));
  const startedSteps = byId(await latestSteps(db, ids));
  const rounds = byId(await roundRows(db, ids));
  const cursor = byId(await cursorRows(db, ids));
  const waits = byId(await currentWaits(db, ids));
  const ownWaits = byId(await sessionWaits(db, ids));
  const figures = (id: string): SessionFigures => {
    const used = usage.get(id);
    const { input = 0, cached = 0, output = 0, reasoning = 0, calls = 0 } = used ?? {};
    return {
      step: Math.max(steps.get(id)?.step ?? 0, startedSteps.get(id)?.step ?? 0),
      compactionRounds: rounds.get(id)?.rounds ?? 0,
      usage: { input, cached, output, reasoning, calls },
      bill: sessionBill(used),
      lastSeq: cursor.get(id)?.seq ?? 0,
      waitsUntil: waits.get(id)?.until ?? null,
      wait: ownWaits.get(id) ?? null,
    };
  };
  return new Map(ids.map((id) => [id, figures(id)]));
}

const byId = <Row extends { readonly id: string }>(rows: readonly Row[]): ReadonlyMap<string, Row> =>
  new Map(rows.map((row) => [row.id, row]));

const usageRows = (db: Database, ids: readonly string[]) =>
  db
    .select({ id: modelCalls.sessionId, ...usageColumns, ...costColumns })
    .from(modelCalls)
    .where(inArray(modelCalls.sessionId, [...ids]))
    .groupBy(modelCalls.sessionId);

const stepRows = (db: Database, ids: readonly string[]) =>
  db
    .select({ id: storedMessages.sessionId, step: sql<number>`max(${storedMessages.step})::int` })
    .from(storedMessages)
    .where(and(inArray(storedMessages.sessionId, [...ids]), isNull(storedMessages.supersededEpoch)))
    .groupBy(storedMessages.sessionId);

const roundRows = (db: Database, ids: readonly string[]) =>
  db
    .select({ id: compactionEvents.sessionId, rounds: sql<number>`max(${compactionEvents.round})::int` })
    .from(compactionEvents)
    .where(
      and(
        inArray(compactionEvents.sessionId, [...ids]),
        eq(compactionEvents.status, "compacted"),
        isNull(compactionEvents.supersededEpoch),
      ),
    )
    .groupBy(compactionEvents.sessionId);

const cursorRows = (db: Database, ids: readonly string[]) =>
  db
    .select({ id: cursors.sessionId, seq: cursors.eventSeq })
    .from(cursors)
    .where(inArray(cursors.sessionId, [...ids]));

/** The most recently begun step of each session's live line, searched backwards from its newest event. */
async function latestSteps(db: Database, ids: readonly string[]): Promise<{ id: string; step: number }[]> {
  const startType = "step:started" satisfies EventType;
  const newest = db
    .select({ step: events.step })
    .from(events)
    .where(
      and(eq(events.sessionId, sessions.id), eq(events.epoch, sessions.epoch), eq(events.type, startType)),
    )
    .orderBy(desc(events.seq))
    .limit(1)
    .as("newest");
  return db
    .select({ id: sessions.id, step: newest.step })
    .from(sessions)
    .crossJoinLateral(newest)
    .where(equalsAny(sessions.id, ids));
}

/** All rows of one session, superseded and compacted ones too, in order. */
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
    delegations: await db
      .select()
      .from(delegations)
      .where(eq(delegations.sessionId, sessionId))
      .orderBy(asc(delegations.epoch), asc(delegations.step), asc(delegations.callIndex)),
    verifications: await db
      .select()
      .from(verifications)
      .where(eq(verifications.sessionId, sessionId))
      .orderBy(
        asc(verifications.epoch),
        asc(verifications.step),
        asc(verifications.round),
        asc(verifications.command),
      ),
    waits: await db
      .select()
      .from(waits)
      .where(eq(waits.sessionId, sessionId))
      .orderBy(asc(waits.epoch), asc(waits.step), asc(waits.callIndex)),
  };
}

/** One request's estimated and billed input, in tokens. */
export interface CallEstimate {
  readonly step: number;
  readonly estimated: number;
  readonly actual: number;
  /** True if the estimate was not based on billed usage. */
  readonly pure: boolean;
  readonly output: number;
  /** Reasoning tokens, part of the output. */
  readonly reasoning: number;
}

/** The last billed requests of steps, newest first. */
export async function recentCalls(
  db: Queryable,
  sessionId: string,
  limit: number,
  model?: string,
): Promise<CallEstimate[]> {
  return db
    .select({
      step: modelCalls.step,
      estimated: modelCalls.estimatedInput,
      actual: sql<number>`${modelCalls.inputTokens}`,
      pure: modelCalls.estimatePure,
      output: sql<number>`coalesce(${modelCalls.outputTokens}, 0)`,
      reasoning: sql<number>`coalesce(${modelCalls.reasoningTokens}, 0)`,
    })
    .from(modelCalls)
    .where(
      and(
        eq(modelCalls.sessionId, sessionId),
        eq(modelCalls.purpose, "step"),
        isNotNull(modelCalls.inputTokens),
        model === undefined ? undefined : eq(modelCalls.model, model),
      ),
    )
    .orderBy(desc(modelCalls.id))
    .limit(limit);
}

/** The inputs, besides its rows, on which the size of a session's request depends. */
export interface SessionSettings {
  readonly id: string;
  /** As stored by whichever version. */
  readonly config: unknown;
  readonly prompt: string;
  readonly tokenRatio: TokenRatio | undefined;
}

export async function loadSettings(db: Queryable, ids: readonly string[]): Promise<SessionSettings[]> {
  const rows = await db
    .select({
      id: sessions.id,
      config: sessions.config,
      prompt: promptText,
      tokenRatio: { ratio: tokenRatios.ratio, samples: tokenRatios.samples },
    })
    .from(sessions)
    .innerJoin(storedMessages, isPromptOfSession)
    .leftJoin(tokenRatios, eq(tokenRatios.model, sql`${sessions.config}->>'model'`))
    .where(inArray(sessions.id, [...ids]));
  return rows.map((row) => ({ ...row, tokenRatio: row.tokenRatio ?? undefined }));
}

/** Sessions whose newest request failed and is made again at a time that has not come. */
async function currentWaits(db: Database, ids: readonly string[]): Promise<{ id: string; until: string }[]> {
  const failed = "llm:error" satisfies EventType;
  const otherTypes = [
    "step:started",
    "llm:response",
    "session:started",
    "session:ended",
  ] satisfies EventType[];
  const last = db
    .select({
      until: sql<string>`${events.at} + (${events.data}->>'retryInMs')::float8 * interval '1 ms'`.as("until"),
    })
    .from(events)
    .where(and(eq(events.sessionId, sessions.id), inArray(events.type, [failed, ...otherTypes])))
    .orderBy(desc(events.seq))
    .limit(1)
    .as("last");
  const rows = await db
    .select({ id: sessions.id, until: last.until })
    .from(sessions)
    .crossJoinLateral(last)
    .where(and(equalsAny(sessions.id, ids), isNull(sessions.endedAt), gt(last.until, sql`now()`)));
  return rows.map(({ id, until }) => ({ id, until: new Date(until).toISOString() }));
}
