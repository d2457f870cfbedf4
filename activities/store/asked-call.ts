/** One call of a step: what the model asked for, and its row in the ledger. */
import { fatal } from "../contract/failures.ts";
import type { ToolCallPart } from "../contract/message.ts";
import type { Queryable } from "./db.ts";
import { findCall, type LedgerRow } from "./tool-calls.ts";
import { requestedCalls } from "./transcript.ts";

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
  fatal("NoSuchCall", `Step ${step} of session ${sessionId} has no call ${index}.`);

/** @throws NoSuchCall (fatal) if the live line has no such call */
export async function findAskedCall(
  db: Queryable,
  sessionId: string,
  { step, index }: CallPlace,
): Promise<AskedCall> {
  const [row, calls] = await Promise.all([
    findCall(db, sessionId, step, index),
    requestedCalls(db, sessionId, step),
  ]);
  const call = calls[index];
  if (!row || !call) throw noSuchCall(sessionId, { step, index });
  return { row, call, calls };
}
