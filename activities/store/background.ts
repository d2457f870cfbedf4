/** Commands that were started in the background, as the ledger has them: which of them run, and of whose ends the model was not told. */
import { and, asc, eq, inArray, sql } from "drizzle-orm";
import type { Queryable } from "./db.ts";
import { isLive } from "./live-line.ts";
import { toolCalls, type CommandEnd } from "./schema/index.ts";
import { callKey, outputHandle } from "./tool-calls.ts";

export type { CommandEnd };

/** As the partial index has it, which parameters would not find. */
export const isUntold = sql`${toolCalls.background} in ('running', 'ended')`;

export interface BackgroundCommand {
  /** Names it for the model: `s12c0`. */
  readonly id: string;
  readonly epoch: number;
  readonly step: number;
  readonly index: number;
  /** How it ended; undefined while it runs, as far as is known. */
  readonly end: CommandEnd | undefined;
}

export type EndedInBackground = BackgroundCommand & { readonly end: CommandEnd };

/** Commands of the live line of whose ends the model was not told, oldest first. */
export async function untoldCommands(db: Queryable, sessionId: string): Promise<BackgroundCommand[]> {
  const { epoch, step, index, backgroundEnd } = toolCalls;
  const rows = await db
    .select({ epoch, step, index, backgroundEnd })
    .from(toolCalls)
    .where(and(isLive(toolCalls, sessionId), isUntold))
    .orderBy(asc(toolCalls.sequence));
  return rows.map((row) => ({
    id: callKey(row),
    epoch: row.epoch,
    step: row.step,
    index: row.index,
    end: row.backgroundEnd ?? undefined,
  }));
}

/** Records how a command ended, once. @returns false if that was recorded or told before */
export async function markEnded(
  db: Queryable,
  sessionId: string,
  { epoch, step, index }: Pick<BackgroundCommand, "epoch" | "step" | "index">,
  end: CommandEnd,
): Promise<boolean> {
  const rows = await db
    .update(toolCalls)
    .set({ background: "ended", backgroundEnd: end })
    .where(
      and(
        isLive(toolCalls, sessionId),
        eq(toolCalls.epoch, epoch),
        eq(toolCalls.step, step),
        eq(toolCalls.index, index),
        eq(toolCalls.background, "running"),
      ),
    )
    .returning({ index: toolCalls.index });
  return rows.length > 0;
}

/** Takes the ends that the model must be told, once, in the transaction that stores them for it; oldest first. @param ids only these */
export async function takeEnded(
  db: Queryable,
  sessionId: string,
  ids?: readonly string[],
): Promise<EndedInBackground[]> {
  const untold = await untoldCommands(db, sessionId);
  const ended = untold.flatMap(({ end, ...command }) =>
    end === undefined || ids?.includes(command.id) === false ? [] : [{ ...command, end }],
  );
  if (ended.length === 0) return [];
  const rows = await db
    .update(toolCalls)
    .set({ background: "told" })
    .where(
      and(
        isLive(toolCalls, sessionId),
        eq(toolCalls.background, "ended"),
        ids && inArray(outputHandle, [...ids]),
      ),
    )
    .returning({ epoch: toolCalls.epoch, step: toolCalls.step, index: toolCalls.index });
  const takenIds = new Set(rows.map(callKey));
  return ended.filter(({ id }) => takenIds.has(id));
}

/** The sandbox is gone, and with it what ran. @param isTold the model is told by other words, which name the commands */
export async function markGone(db: Queryable, sessionId: string, isTold: boolean): Promise<void> {
  await db
    .update(toolCalls)
    .set(isTold ? { background: "told" } : { background: "ended", backgroundEnd: { how: "gone" } })
    .where(and(isLive(toolCalls, sessionId), eq(toolCalls.background, "running")));
}
