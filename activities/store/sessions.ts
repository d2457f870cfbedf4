/** Sessions and the runs that may write to them. */
import { and, eq, exists, isNotNull, isNull, max, ne, or, sql } from "drizzle-orm";
import { alias } from "drizzle-orm/pg-core";
import type { RunConfig } from "../config/agent-config.ts";
import type { Skill } from "../config/skills.ts";
import type { McpCatalogue } from "../contract/tools.ts";
import type { UserPart } from "../contract/message.ts";
import { estimateMessage, type TokenRatio } from "../contract/request-size.ts";
import type { SessionStatus } from "../contract/activities.ts";
import type { VerifyOutcome } from "../contract/verify.ts";
import { isLive } from "./live-line.ts";
import type { Queryable, Store } from "./db.ts";
import { isUntold } from "./background.ts";
import { isOrphan } from "./delegations.ts";
import { loadCatalogues } from "./mcp.ts";
import { reachedStep } from "./missing-steps.ts";
import { ANY, part, prepared } from "./statements.ts";
import {
  parseStoredConfig,
  configText,
  isPromptOfSession,
  promptRow,
  promptText,
  SYSTEM_SEQUENCE,
} from "./stored-settings.ts";
import {
  checkpoints,
  cursors,
  guidance,
  questions,
  sandboxes,
  sessions,
  storedMessages,
  tokenRatios,
  toolCalls,
} from "./schema/index.ts";

export interface NewSession {
  readonly id: string;
  readonly task: string;
  /** Images and files that belong to the task. */
  readonly parts?: readonly UserPart[];
  readonly config: RunConfig;
  /** Who starts it. */
  readonly owner?: string | undefined;
  /** Temporal's namespace in which it will run. */
  readonly namespace?: string | undefined;
  readonly instructions?: string;
  readonly skills?: readonly Skill[];
  /** The system prompt, if it is copied from another session. */
  readonly prompt?: string;
  /** For a delegate: the call that it performs. */
  readonly parent?: {
    readonly id: string;
    readonly call: string;
    readonly epoch: number;
    readonly access: "read" | "write";
  };
  /** Files to start with, as a checkpoint of step 0. */
  readonly workspace?: { readonly manifest: Uint8Array; readonly pack: Uint8Array };
}

export interface Session {
  readonly id: string;
  readonly status: SessionStatus;
  readonly task: string;
  readonly config: RunConfig;
  /** The system prompt that it runs with. */
  readonly system: string;
  readonly epoch: number;
  readonly runId: string | undefined;
  /** The sandbox it last had; none once it ended. */
  readonly container: string | undefined;
  readonly restoreWorkspace: boolean;
  /** Queue of the host that has its sandbox; undefined means the workflow's own. */
  readonly sandboxQueue: string | undefined;
  /** The model has a pending notice about the sandbox for the next step boundary. */
  readonly sandboxNotice: boolean;
  /** People's messages wait for the next step. */
  readonly hasWaiting: boolean;
  /** Commands were started in the background of whose ends the model was not told. */
  readonly hasCommands: boolean;
  /** Who started it, if the client reported it. */
  readonly owner: string | undefined;
  /** The session that delegated its task. */
  readonly parentId: string | undefined;
  /** For a delegate: no call of its parent waits for it any more. */
  readonly isOrphan: boolean;
  /** The last step that its rows reach, or say is missing; one that was interrupted before the model spoke may have no row. */
  readonly reached: number;
  /** The ratio of its model's real count to our estimate, as learned over all sessions. */
  readonly tokenRatio: TokenRatio | undefined;
  /** Tools of the MCP servers that it has; absent if it has none. */
  readonly catalogues?: readonly McpCatalogue[];
}

/** Stores a session with its system prompt as the first message and its task as the second. @returns false if the id is taken already */
export async function createSession(store: Pick<Store, "db">, session: NewSession): Promise<boolean> {
  const content: UserPart[] = [{ type: "text", text: session.task }, ...(session.parts ?? [])];
  return store.db.transaction(async (tx) => {
    const rows = await tx
      .insert(sessions)
      .values({
        id: session.id,
        task: session.task,
        config: session.config,
        owner: session.owner ?? null,
        namespace: session.namespace ?? null,
        ...parentColumns(session.parent),
      })
      .onConflictDoNothing()
      .returning({ id: sessions.id });
    if (rows.length === 0) return false;
    await tx.insert(cursors).values({ sessionId: session.id, messageSequence: 2 });
    const first = { sessionId: session.id, epoch: 1, step: 0 };
    await tx.insert(storedMessages).values([
      { ...first, ...promptRow(session) },
      {
        ...first,
        sequence: SYSTEM_SEQUENCE + 1,
        position: SYSTEM_SEQUENCE + 1,
        slot: "user",
        role: "user",
        kind: "task",
        content,
        tokenCount: estimateMessage({ role: "user", content }, session.config),
      },
    ]);
    if (session.workspace) {
      await tx.insert(checkpoints).values({ sessionId: session.id, epoch: 1, step: 0, ...session.workspace });
    }
    return true;
  });
}

function parentColumns(parent: NewSession["parent"]) {
  if (parent === undefined) return {};
  const { id: parentId, call: parentCall, epoch: parentEpoch, access } = parent;
  return { parentId, parentCall, parentEpoch, access };
}

/** Every activity begins with this query: building and planning it each time took longer than running it. */
const sessionQuery = prepared((db) =>
  db
    .select({
      id: sessions.id,
      status: sql<SessionStatus>`${sessions.status}`,
      task: sessions.task,
      config: configText,
      prompt: promptText,
      epoch: sessions.epoch,
      runId: sessions.runId,
      container: sessions.container,
      restoreWorkspace: sessions.restoreWorkspace,
      sandboxQueue: sandboxes.taskQueue,
      sandboxNotice: sql<boolean>`${sandboxes.notice} is not null`,
      hasWaiting: sql<boolean>`${exists(
        part
          .select(ANY)
          .from(guidance)
          // As the index has it, which parameters would not find.
          .where(
            and(
              eq(guidance.sessionId, sessions.id),
              isNull(guidance.deliveredSequence),
              sql`not ${guidance.dropped}`,
            ),
          ),
      )}`,
      hasCommands: sql<boolean>`${exists(
        part
          .select(ANY)
          .from(toolCalls)
          .where(and(eq(toolCalls.sessionId, sessions.id), isUntold, isNull(toolCalls.supersededEpoch))),
      )}`,
      owner: sessions.owner,
      parentId: sessions.parentId,
      isOrphan,
      tokenRatio: { ratio: tokenRatios.ratio, samples: tokenRatios.samples },
      reached: reachedStep,
      isPlanApproved: sql<boolean>`${exists(
        part
          .select(ANY)
          .from(questions)
          .where(
            and(
              eq(questions.sessionId, sessions.id),
              sql`${questions.kind} = 'plan'`,
              sql`${questions.status} = 'answered'`,
            ),
          ),
      )}`,
    })
    .from(sessions)
    .innerJoin(storedMessages, isPromptOfSession)
    .leftJoin(sandboxes, eq(sandboxes.sessionId, sessions.id))
    .leftJoin(tokenRatios, sql`${tokenRatios.model} = ${sessions.config}->>'model'`)
    .where(eq(sessions.id, sql.placeholder("id")))
    .prepare("find_session"),
);

export async function findSession(db: Queryable, id: string): Promise<Session | undefined> {
  const [storedRow] = await sessionQuery(db).execute({ id });
  if (!storedRow) return undefined;
  const { config: text, prompt, isPlanApproved, ...row } = storedRow;
  const stored = parseStoredConfig(id, text);
  // Plan mode lasts until a person approves the plan; a reset to before that withdraws the approval.
  const config = stored.plan === true && isPlanApproved ? { ...stored, plan: false } : stored;
  return {
    ...row,
    config,
    system: prompt,
    runId: row.runId ?? undefined,
    container: row.container ?? undefined,
    sandboxQueue: row.sandboxQueue ?? undefined,
    owner: row.owner ?? undefined,
    parentId: row.parentId ?? undefined,
    tokenRatio: row.tokenRatio ?? undefined,
    catalogues:
      config.mcpServers === undefined && config.ownTools !== true ? undefined : await loadCatalogues(db, id),
  };
}

/** Sessions that have not ended, according to their rows. */
export async function activeSessionIds(db: Queryable): Promise<string[]> {
  const rows = await db.select({ id: sessions.id }).from(sessions).where(isNull(sessions.endedAt));
  return rows.map(({ id }) => id);
}

/**
 * Other sessions of the same owner that run or wait, delegates not counted. If two begin at the same time, the later one counts
 * the earlier.
 */
export function othersOfOwner(db: Queryable, { id, owner }: Pick<Session, "id" | "owner">): Promise<number> {
  const self = alias(sessions, "mine");
  return db.$count(
    sessions,
    and(
      owner === undefined ? isNull(sessions.owner) : eq(sessions.owner, owner),
      isNull(sessions.endedAt),
      isNull(sessions.parentId),
      ne(sessions.id, id),
      or(
        isNotNull(sessions.runId),
        sql`(${sessions.createdAt}, ${sessions.id}) < ${part
          .select({ createdAt: self.createdAt, id: self.id })
          .from(self)
          .where(eq(self.id, id))}`,
      ),
    ),
  );
}

/** The last finished step of the live line: the highest with an answer. */
export async function lastStep(db: Queryable, sessionId: string): Promise<number> {
  const [row] = await db
    .select({ step: max(storedMessages.step) })
    .from(storedMessages)
    .where(and(isLive(storedMessages, sessionId), eq(storedMessages.slot, "assistant")));
  return row?.step ?? 0;
}

const ENDED_NOW = { endedAt: sql`now()`, updatedAt: sql`now()`, container: null };

/** Stores how a session ended, once: a second writer changes nothing. */
export async function endSession(
  db: Queryable,
  id: string,
  runId: string,
  end: {
    readonly status: SessionStatus;
    readonly result: string;
    readonly error: unknown;
    readonly verified?: VerifyOutcome | undefined;
  },
): Promise<{ readonly durationMs: number } | undefined> {
  const [row] = await db
    .update(sessions)
    .set({
      status: end.status,
      result: end.result,
      error: end.error ?? null,
      verified: end.verified ?? null,
      ...ENDED_NOW,
    })
    .where(and(eq(sessions.id, id), eq(sessions.runId, runId), isNull(sessions.endedAt)))
    // Both times are from the database's clock: a worker's clock may have jumped.
    .returning({
      durationMs: sql<number>`(extract(epoch from now() - ${sessions.createdAt}) * 1000)::float8`,
    });
  return row && { durationMs: Math.round(row.durationMs) };
}

export async function setContainer(db: Queryable, id: string, container: string): Promise<void> {
  await db.update(sessions).set({ container, restoreWorkspace: false }).where(eq(sessions.id, id));
}

/** The session has no sandbox any more. */
export async function clearContainer(db: Queryable, id: string): Promise<void> {
  await db.update(sessions).set({ container: null }).where(eq(sessions.id, id));
}

export interface AbandonedEnd {
  readonly status: SessionStatus;
  /** Null for a run that ended well. */
  readonly message: string | null;
  readonly type?: string;
  readonly result?: string;
}

/**
 * Ends a session whose run could not store its end (terminated, timed out, or without a database). Idempotent.
 * @param runId the run that had the session when this was found
 * @returns false if it has ended already, or another run has claimed it
 */
export async function endAbandoned(
  db: Queryable,
  id: string,
  runId: string | undefined,
  end: AbandonedEnd,
): Promise<boolean> {
  const rows = await db
    .update(sessions)
    .set({
      status: end.status,
      error: end.message === null ? null : { type: end.type ?? "RunEnded", message: end.message },
      result: end.result,
      ...ENDED_NOW,
    })
    .where(
      and(
        eq(sessions.id, id),
        runId === undefined ? isNull(sessions.runId) : eq(sessions.runId, runId),
        isNull(sessions.endedAt),
      ),
    )
    .returning({ id: sessions.id });
  return rows.length > 0;
}
