/** One call of a step: what the model asked for, and its row in the ledger. */
import { and, eq, getTableColumns, sql } from "drizzle-orm";
import { fatal } from "../contract/failures.ts";
import type { AssistantPart, ToolCallPart } from "../contract/message.ts";
import type { Queryable } from "./db.ts";
import { isLive } from "./live-line.ts";
import { prepared } from "./statements.ts";
import { storedMessages, toolCalls } from "./schema/index.ts";
import { isCall, type LedgerRow } from "./tool-calls.ts";
import { callsOf } from "./transcript.ts";

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
  const [found] = await askedQuery(db).execute({ sessionId, step, index });
  const calls = found === undefined ? [] : callsOf(found.answer as AssistantPart[]);
  const call = calls[index];
  if (!found || !call) throw noSuchCall(sessionId, { step, index });
  return { row: found.row, call, calls };
}
