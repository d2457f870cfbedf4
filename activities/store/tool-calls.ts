/** The ledger of tool calls: who may run a call, what the model asked for, how it ended, and the parts of it that events carry. */
import { and, asc, desc, eq, getTableColumns, inArray, ne, type Placeholder, sql } from "drizzle-orm";
import type { ToolOutcome, AssistantPart, ToolCallPart } from "../contract/message.ts";
import { isLive } from "./live-line.ts";
import type { Queryable } from "./db.ts";
import { prepared } from "./statements.ts";
import { sandboxes, storedMessages, toolCalls, toolOutputs } from "./schema/index.ts";
import { fatal } from "../contract/failures.ts";
import { callsOf } from "./transcript.ts";
import { cutChars, cutTail } from "../text/cut.ts";
import type { EventData } from "./event.ts";

export type LedgerRow = typeof toolCalls.$inferSelect;

/** Stable name of a call within its session: names the supervised command and the output's handle. */
export function callKey(call: {
  readonly epoch: number;
  readonly step: number;
  readonly index: number;
}): string {
  return `${call.epoch === 1 ? "" : `e${call.epoch}`}s${call.step}c${call.index}`;
}

/** `callKey` in SQL. */
export const outputHandle = sql<string>`case when ${toolCalls.epoch} = 1 then '' else 'e' || ${toolCalls.epoch} end
  || 's' || ${toolCalls.step} || 'c' || ${toolCalls.index}`;

/** Condition for a call's row of the live line. */
const isCall = (sessionId: string | Placeholder, step: number | Placeholder, index: number | Placeholder) =>
  and(isLive(toolCalls, sessionId), eq(toolCalls.step, step), eq(toolCalls.index, index));

const callQuery = prepared((db) =>
  db
    .select()
    .from(toolCalls)
    .where(isCall(sql.placeholder("sessionId"), sql.placeholder("step"), sql.placeholder("index")))
    .prepare("find_call"),
);

/** The current row of a call of the live line; undefined if there is none. */
export async function findCall(
  db: Queryable,
  sessionId: string,
  step: number,
  index: number,
): Promise<LedgerRow | undefined> {
  const [row] = await callQuery(db).execute({ sessionId, step, index });
  return row;
}

/**
 * Claims a call for this attempt before anything is run. The raised fence makes late writes of earlier attempts fail.
 * A read-only call is not claimed: it may run twice, and the first result is kept. The first claim records the session's
 * current sandbox: in that sandbox, a command without a record was never begun.
 * @param call the call's row as read before; another attempt may have claimed it since
 * @returns the row before the claim, so that `pending` means that no attempt began it; undefined if a reset superseded it
 */
export async function claimCall(
  db: Queryable,
  call: LedgerRow,
  isReadOnly: (name: string) => boolean,
): Promise<{ before: LedgerRow; fence: number } | undefined> {
  const { sessionId, step, index } = call;
  for (let before: LedgerRow | undefined = call; ; before = await findCall(db, sessionId, step, index)) {
    if (!before) return undefined;
    const isOpen = before.status === "pending" || before.status === "running";
    if (!isOpen || isReadOnly(before.name)) return { before, fence: before.fence };
    const sandbox = sql`(select ${sandboxes.container} from ${sandboxes} where ${sandboxes.sessionId} = ${sessionId})`;
    const [row] = await db
      .update(toolCalls)
      .set({
        status: "running",
        fence: sql`${toolCalls.fence} + 1`,
        startedAt: before.startedAt ?? sql`now()`,
        container: before.status === "pending" ? sandbox : undefined,
      })
      // Two attempts at once must not both find it pending.
      .where(and(isCall(sessionId, step, index), eq(toolCalls.fence, before.fence)))
      .returning({ fence: toolCalls.fence });
    if (row) return { before, fence: row.fence };
  }
}

/** Stores how a call ended, once and only by the attempt that holds the fence. @returns false if another attempt did */
export async function finishCall(
  db: Queryable,
  call: LedgerRow,
  fence: number,
  end: { readonly outcome: ToolOutcome; readonly exitCode: number | undefined; readonly truncated: boolean },
): Promise<boolean> {
  const rows = await db
    .update(toolCalls)
    .set({
      status: end.outcome,
      exitCode: end.exitCode ?? null,
      truncated: end.truncated,
      finishedAt: sql`now()`,
    })
    .where(
      and(
        isCall(call.sessionId, call.step, call.index),
        eq(toolCalls.fence, fence),
        inArray(toolCalls.status, ["pending", "running"]),
      ),
    )
    .returning({ index: toolCalls.index });
  return rows.length > 0;
}

/** A call that has not ended, and how long ago it began by the server's clock, in ms; 0 if it has not begun. */
export type OpenCall = LedgerRow & { readonly runningMs: number };

/** Calls of the live line that have not ended: a closing session stores interrupted results for them. */
export async function openCalls(db: Queryable, sessionId: string): Promise<OpenCall[]> {
  return db
    .select({
      ...getTableColumns(toolCalls),
      runningMs: sql<number>`coalesce(round(1000 * extract(epoch from now() - ${toolCalls.startedAt})), 0)::float8`,
    })
    .from(toolCalls)
    .where(and(isLive(toolCalls, sessionId), inArray(toolCalls.status, ["pending", "running"])))
    .orderBy(asc(toolCalls.sequence));
}

/** The result row of a call that ended earlier, for its facts. */
export async function resultOf(
  db: Queryable,
  call: LedgerRow,
): Promise<{ tokens: number; content: unknown } | undefined> {
  const [row] = await db
    .select({ tokens: storedMessages.tokenCount, content: storedMessages.content })
    .from(storedMessages)
    .where(and(eq(storedMessages.sessionId, call.sessionId), eq(storedMessages.sequence, call.sequence)));
  return row;
}

/** A call by the id that events name, with the content of its result; of several lines' calls the live one, else the newest. */
export async function callWithResult(
  db: Queryable,
  sessionId: string,
  callId: string,
): Promise<{ readonly row: LedgerRow; readonly content: unknown } | undefined> {
  const [match] = await db
    .select({ row: getTableColumns(toolCalls), content: storedMessages.content })
    .from(toolCalls)
    .leftJoin(
      storedMessages,
      and(eq(storedMessages.sessionId, toolCalls.sessionId), eq(storedMessages.sequence, toolCalls.sequence)),
    )
    .where(and(eq(toolCalls.sessionId, sessionId), eq(toolCalls.callId, callId)))
    .orderBy(sql`${toolCalls.supersededEpoch} is null desc`, desc(toolCalls.sequence))
    .limit(1);
  return match;
}

/** Package managers with what makes them install; POSIX, as Postgres reads it. */
const INSTALLS =
  "(npm|pnpm|yarn|bun|pip3?|uv|poetry|cargo|go|gem|bundle|composer|apt(-get)?|conda)\\s+([a-z-]+\\s+)?(i|ci|install|add|get|sync|require)\\y";

/** The newest commands of the live line that installed something, oldest first. */
export async function installCommands(
  db: Queryable,
  sessionId: string,
  most: number,
): Promise<readonly { readonly step: number; readonly command: string }[]> {
  const part = sql`${sql.identifier("call_part")}`;
  const command = sql<string>`${part}->'input'->>'command'`;
  const rows = await db
    .select({ step: storedMessages.step, command })
    .from(storedMessages)
    .crossJoin(sql`json_array_elements(${storedMessages.content}) as call_part`)
    .where(
      and(
        isLive(storedMessages, sessionId),
        eq(storedMessages.role, "assistant"),
        sql`${part}->>'type' = 'tool-call'`,
        sql`${command} ~* ${INSTALLS}`,
      ),
    )
    .orderBy(desc(storedMessages.step))
    .limit(most);
  return rows.toReversed();
}

/** A piece of a whole output, from `offset` on, in characters. */
export type OutputPart = Pick<
  typeof toolOutputs.$inferInsert,
  "sessionId" | "handle" | "part" | "offset" | "content"
>;

/** Appends a piece. Idempotent by part, so that a second attempt may write the same piece again. */
export async function saveOutputPart(db: Queryable, part: OutputPart): Promise<void> {
  await db.insert(toolOutputs).values(part).onConflictDoNothing();
}

/** Bytes of a session's whole outputs in the database, except this call's: computed without reading their texts. */
export async function storedOutputBytes(db: Queryable, sessionId: string, handle: string): Promise<number> {
  const [row] = await db
    .select({ bytes: sql<number>`coalesce(sum(pg_column_size(${toolOutputs.content})), 0)::float8` })
    .from(toolOutputs)
    .where(and(eq(toolOutputs.sessionId, sessionId), ne(toolOutputs.handle, handle)));
  return row?.bytes ?? 0;
}

export interface AskedCall {
  readonly row: LedgerRow;
  readonly call: ToolCallPart;
  /** All calls of the step, in order. */
  readonly calls: readonly ToolCallPart[];
}

interface CallPlace {
  readonly step: number;
  readonly index: number;
}

export const noSuchCall = (sessionId: string, { step, index }: CallPlace) =>
  fatal(
    "NoSuchCall",
    `Step ${step} of session ${sessionId} has no call ${index} in Postgres, whose rows differ from what the run did. Nothing was run or changed; the conversation and the files are kept. Compare both with \`longhaul doctor\`, and continue with: longhaul say ${sessionId} "Go on."`,
  );

/** The ledger's row and the answer that asked for it, in one statement: each costs a process of Postgres that is woken. */
const askedQuery = prepared((db) =>
  db
    .select({ row: getTableColumns(toolCalls), answer: storedMessages.content })
    .from(toolCalls)
    .innerJoin(
      storedMessages,
      and(
        isLive(storedMessages, sql`${toolCalls.sessionId}`),
        eq(storedMessages.step, toolCalls.step),
        eq(storedMessages.slot, "assistant"),
      ),
    )
    .where(isCall(sql.placeholder("sessionId"), sql.placeholder("step"), sql.placeholder("index")))
    .prepare("find_asked_call"),
);

/** @throws NoSuchCall (fatal) if the live line has no such call */
export async function findAskedCall(
  db: Queryable,
  sessionId: string,
  { step, index }: CallPlace,
): Promise<AskedCall> {
  const [match] = await askedQuery(db).execute({ sessionId, step, index });
  const calls = match === undefined ? [] : callsOf(match.answer as AssistantPart[]);
  const call = calls[index];
  if (!match || !call) throw noSuchCall(sessionId, { step, index });
  return { row: match.row, call, calls };
}

/** Chosen: some two screens. */
const MAX_CHARS = 8_000;
/** Length of the excerpt from a result's end: some lines. */
const EXCERPT_CHARS = 300;

export function boundedInput(input: unknown): Pick<EventData["llm:tool-call"], "input" | "inputCut"> {
  const json = JSON.stringify(input) ?? "";
  return json.length <= MAX_CHARS ? { input } : { inputCut: cutChars(json, MAX_CHARS) };
}

/** A call's outcome, whoever performed it. `text` is what the model reads; the call's handle gives the rest of a long result. */
export function resultEvent(
  call: LedgerRow,
  end: {
    readonly outcome: ToolOutcome;
    readonly text: string;
    readonly durationMs: number;
    readonly exitCode?: number | undefined;
    readonly truncated?: boolean;
  },
): { readonly type: "llm:tool-result"; readonly data: EventData["llm:tool-result"] } {
  const { outcome, text, durationMs, exitCode = null, truncated = false } = end;
  const { callId, index, name } = call;
  const output =
    text.length <= MAX_CHARS ? { text } : { text: cutChars(text, MAX_CHARS), handle: callKey(call) };
  const excerpt = cutTail(text, EXCERPT_CHARS);
  return {
    type: "llm:tool-result",
    data: { callId, index, name, outcome, durationMs, exitCode, truncated, excerpt, ...output },
  };
}
