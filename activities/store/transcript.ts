/** The transcript: rows of the live line, and the one transaction in which a step's answer is stored. */
import { rowsGone } from "../contract/failures.ts";
import { and, desc, eq, gte, inArray, isNotNull, lt, or, sql } from "drizzle-orm";
import type {
  AssistantPart,
  Message,
  MessageKind,
  StoredMessage,
  ToolCallPart,
} from "../contract/message.ts";
import { isLive } from "./live-line.ts";
import { dropChunks } from "./events.ts";
import type { Queryable } from "./db.ts";
import { prepared } from "./statements.ts";
import { cursors, storedMessages } from "./schema/index.ts";

/** A file of instructions that a result contains. */
export interface FolderNotes {
  /** Relative to the workspace. */
  readonly path: string;
  /** Bytes of the file in the result; 0 if the call itself read the file. */
  readonly bytes: number;
}

/** Metadata that a row stores besides its content. */
export interface MessageMeta {
  readonly usage?: { readonly input: number; readonly output: number; readonly cached?: number } | undefined;
  readonly finish?: string;
  /** For an answer: the model that gave it. */
  readonly model?: string;
  /** For coalesced guidance: the messages' ids. */
  readonly ids?: readonly string[];
  readonly firstQueuedAt?: string;
  readonly lastQueuedAt?: string;
  /** The senders, each name once. */
  readonly by?: readonly string[];
  /** For a result: folders' instructions that it contains. */
  readonly notes?: readonly FolderNotes[];
  /** For the notice that the rows of these steps are missing. */
  readonly missing?: { readonly from: number; readonly to: number };
  /** More messages waited than the step had room for. */
  readonly leftSome?: boolean;
}

type MessageRow = Omit<
  typeof storedMessages.$inferSelect,
  "id" | "sessionId" | "supersededEpoch" | "supersededBy" | "createdAt"
>;

export function toStoredMessage(row: MessageRow): StoredMessage {
  const meta = (row.meta ?? {}) as MessageMeta;
  return {
    role: row.role,
    content: row.content,
    sequence: row.sequence,
    position: row.position,
    epoch: row.epoch,
    step: row.step,
    slot: row.slot,
    kind: row.kind as MessageKind,
    tokens: row.tokenCount,
    prunedStep: row.prunedStep ?? undefined,
    usage: meta.usage,
    model: meta.model,
    notes: meta.notes?.map(({ path }) => path),
  } as StoredMessage;
}

const answerQuery = prepared((db) =>
  db
    .select()
    .from(storedMessages)
    .where(
      and(
        isLive(storedMessages, sql.placeholder("sessionId")),
        eq(storedMessages.step, sql.placeholder("step")),
        eq(storedMessages.slot, "assistant"),
      ),
    )
    .prepare("find_answer"),
);

/** The answer of a step, if it is stored: then the step has been paid for. */
export async function findAnswer(
  db: Queryable,
  sessionId: string,
  step: number,
): Promise<(StoredMessage & { finish: string }) | undefined> {
  const [row] = await answerQuery(db).execute({ sessionId, step });
  return row && { ...toStoredMessage(row), finish: ((row.meta ?? {}) as MessageMeta).finish ?? "stop" };
}

/** Whether a view ends with an answer that the model finished and that completes the task: a run has nothing to add to it. */
export async function endsWithAnswer(
  db: Queryable,
  sessionId: string,
  rows: readonly StoredMessage[],
): Promise<boolean> {
  const last = rows.at(-1);
  if (last?.role !== "assistant" || callsOf(last.content).length > 0) return false;
  if (rows.at(-2)?.kind === "wrap-up") return false;
  return (await findAnswer(db, sessionId, last.step))?.finish === "stop";
}

/** Messages from one sequence up to, without, another; all that follow if there is none. */
export interface MessageSpan {
  readonly from: number;
  readonly to: number | undefined;
}

/** The newest answer of the live line. */
export async function lastAnswer(
  db: Queryable,
  sessionId: string,
  besides: readonly MessageSpan[] = [],
): Promise<StoredMessage | undefined> {
  const [row] = await db
    .select()
    .from(storedMessages)
    .where(
      and(
        isLive(storedMessages, sessionId),
        eq(storedMessages.slot, "assistant"),
        ...besides.map(({ from, to }) =>
          or(
            lt(storedMessages.sequence, from),
            to === undefined ? undefined : gte(storedMessages.sequence, to),
          ),
        ),
      ),
    )
    .orderBy(desc(storedMessages.sequence))
    .limit(1);
  return row && toStoredMessage(row);
}

/** The folders' instructions that results of the live line contain. */
export async function loadedNotes(db: Queryable, sessionId: string): Promise<FolderNotes[]> {
  const rows = await db
    .select({ meta: storedMessages.meta })
    .from(storedMessages)
    .where(
      and(isLive(storedMessages, sessionId), eq(storedMessages.role, "tool"), isNotNull(storedMessages.meta)),
    );
  return rows.flatMap(({ meta }) => (meta as MessageMeta).notes ?? []);
}

/** Reserves sequences. @returns the first of `count` */
export async function takeSequences(db: Queryable, sessionId: string, count: number): Promise<number> {
  const [row] = await db
    .update(cursors)
    .set({ messageSequence: sql`${cursors.messageSequence} + ${count}` })
    .where(eq(cursors.sessionId, sessionId))
    .returning({ last: cursors.messageSequence });
  if (!row) throw rowsGone("nothing was stored");
  return row.last - count + 1;
}

export interface NewMessage {
  readonly epoch: number;
  readonly step: number;
  readonly slot: string;
  readonly kind: MessageKind;
  readonly message: Message;
  readonly tokens: number;
  readonly meta?: MessageMeta;
  /** Order in the view; defaults to its sequence. */
  readonly position?: number;
}

/** Stores a message at a reserved sequence. Idempotent by (session, epoch, step, slot). @returns false if it was stored before */
export async function insertMessage(
  db: Queryable,
  sessionId: string,
  sequence: number,
  row: NewMessage,
): Promise<boolean> {
  const rows = await db
    .insert(storedMessages)
    .values({
      sessionId,
      sequence,
      position: row.position ?? sequence,
      epoch: row.epoch,
      step: row.step,
      slot: row.slot,
      role: row.message.role,
      kind: row.kind,
      content: row.message.content,
      meta: row.meta ?? null,
      tokenCount: row.tokens,
    })
    .onConflictDoNothing()
    .returning({ id: storedMessages.id });
  return rows.length > 0;
}

/** Stores the part of an answer before a person stopped it; `commitAnswer` stores a whole answer with its calls. */
export async function insertPartialAnswer(db: Queryable, sessionId: string, row: NewMessage): Promise<void> {
  await insertMessage(db, sessionId, await takeSequences(db, sessionId, 1), row);
  await dropChunks(db, sessionId, row.step);
}

interface LinePlace {
  readonly sessionId: string;
  readonly epoch: number;
}

const ofStep = ({ sessionId, epoch }: LinePlace, step: number) =>
  and(
    eq(storedMessages.sessionId, sessionId),
    eq(storedMessages.epoch, epoch),
    eq(storedMessages.step, step),
  );

/** Whether a message is stored: then no sequence must be reserved for it, as that would leave a gap. */
export async function hasMessage(db: Queryable, at: LinePlace, step: number, slot: string): Promise<boolean> {
  const rows = await db
    .select({ id: storedMessages.id })
    .from(storedMessages)
    .where(and(ofStep(at, step), eq(storedMessages.slot, slot)));
  return rows.length > 0;
}

/** The calls that an answer requests, in order. */
export function callsOf(content: readonly AssistantPart[]): ToolCallPart[] {
  return content.filter((part) => part.type === "tool-call");
}

export interface StepSoFar {
  /** The slot for the step's next message from a person. */
  readonly slot: string;
  /** Tokens of the messages that the step already has, as after an interrupt. */
  readonly tokens: number;
  /** The step had no room for all waiting messages. */
  readonly isFull: boolean;
  /** The model has answered: later messages belong to the next step. */
  readonly isAnswered: boolean;
}

/** The people's messages that a repeated step already has. */
export async function stepSoFar(db: Queryable, at: LinePlace, step: number): Promise<StepSoFar> {
  const rows = await db
    .select({ kind: storedMessages.kind, tokens: storedMessages.tokenCount, meta: storedMessages.meta })
    .from(storedMessages)
    .where(and(ofStep(at, step), inArray(storedMessages.kind, ["guidance", "answer"])));
  const guidanceRows = rows.filter(({ kind }) => kind === "guidance");
  return {
    slot: guidanceRows.length === 0 ? "user" : `user:${guidanceRows.length}`,
    tokens: guidanceRows.reduce((sum, row) => sum + row.tokens, 0),
    isFull: guidanceRows.some((row) => (row.meta as MessageMeta | null)?.leftSome === true),
    isAnswered: guidanceRows.length < rows.length,
  };
}
