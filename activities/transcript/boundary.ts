/** Where a compaction cuts: which messages stay verbatim and which a summary replaces. */
import type { StoredMessage } from "../contract/message.ts";
import { shownTokens } from "./view.ts";

export interface CutOptions {
  /** Messages that stay at the end, counted before rounding up to whole batches. */
  readonly tailMessages: number;
  /** Tokens that stay at the end; only the live turn may exceed them. */
  readonly tailTokens: number;
  /** Turns of the user at the end beyond which nothing stays. Default: any number. */
  readonly tailTurns?: number;
  /** User messages before the tail that stay, newest first: at most this many tokens. The task always stays. */
  readonly userTokens: number;
  /** The newest of them stays if it has at most this many, also if `userTokens` leaves no room. Default `userTokens`. */
  readonly newestUserTokens?: number;
  /** Messages after the task that stay at the beginning (middle removal). Default 0. */
  readonly headMessages?: number;
  /** Even the newest calls are replaced: only messages that no answer followed stay at the end. */
  readonly withoutLive?: boolean;
}

export interface Cut {
  /** Messages that are replaced, in view order, earlier summaries included. */
  readonly replaced: readonly StoredMessage[];
  /** Messages that stay verbatim, in view order. */
  readonly kept: readonly StoredMessage[];
  /** The newest earlier summary: the next one incorporates it. */
  readonly previous: StoredMessage | undefined;
}

/**
 * Cuts a view. A call and its results are one batch and never separated; the tail begins at a batch, holds at least the
 * live turn (what the model has not answered yet, with the calls it belongs to) and never reaches past a summary.
 * `replaced` is empty if there is nothing but kept messages and a summary.
 */
export function cutView(rows: readonly StoredMessage[], options: CutOptions): Cut {
  const batches = batchesOf(rows);
  const tailFrom = options.withoutLive === true ? unansweredStart(batches) : tailStart(batches, options);
  const keep = new Set<StoredMessage>(batches.slice(tailFrom).flat());
  const older = batches.slice(0, tailFrom);
  for (const row of headOf(older, options.headMessages ?? 0)) keep.add(row);
  for (const row of keptUserRows(older.flat(), rows, options)) keep.add(row);
  const summaries = rows.filter((row) => row.kind === "summary");
  const replaced = rows.filter((row) => !keep.has(row));
  const anythingNew = replaced.some((row) => row.kind !== "summary");
  return {
    replaced: anythingNew ? replaced : [],
    kept: anythingNew ? rows.filter((row) => keep.has(row)) : rows,
    previous: summaries.at(-1),
  };
}

type Batch = readonly StoredMessage[];

/** An answer with its results is one batch, every other row one by itself. */
function batchesOf(rows: readonly StoredMessage[]): Batch[] {
  const batches: StoredMessage[][] = [];
  for (const row of rows) {
    const last = batches.at(-1);
    if (row.role === "tool" && last !== undefined && last[0]?.role === "assistant") last.push(row);
    else batches.push([row]);
  }
  return batches;
}

function tailStart(batches: readonly Batch[], options: CutOptions): number {
  const { tailMessages, tailTokens, tailTurns = Infinity } = options;
  let from = liveStart(batches);
  const live = batches.slice(from);
  let messages = live.flat().length;
  let tokens = tokensOf(live.flat());
  let turns = live.filter(beginsTurn).length;
  while (from > 0 && turns < tailTurns) {
    const batch = batches[from - 1] ?? [];
    if (batch[0]?.kind === "summary" || messages >= tailMessages) break;
    tokens += tokensOf(batch);
    if (tokens > tailTokens) break;
    messages += batch.length;
    if (beginsTurn(batch)) turns += 1;
    from--;
  }
  return from;
}

function beginsTurn([first]: Batch): boolean {
  return first?.kind === "task" || first?.kind === "guidance";
}

/** First batch of what the model has not answered: the newest calls with their results, and all after them. */
function liveStart(batches: readonly Batch[]): number {
  const from = unansweredStart(batches);
  const batch = batches[from - 1];
  return batch !== undefined && batch.length > 1 ? from - 1 : from;
}

function unansweredStart(batches: readonly Batch[]): number {
  let from = batches.length;
  while (from > 0 && batches[from - 1]?.[0]?.role === "user") from--;
  return from;
}

function headOf(older: readonly Batch[], headMessages: number): StoredMessage[] {
  const head: StoredMessage[] = [];
  for (const batch of older) {
    if (batch[0]?.kind === "summary" || head.length + batch.length > headMessages + 1) break;
    head.push(...batch);
  }
  return headMessages === 0 ? [] : head;
}

function keptUserRows(
  older: readonly StoredMessage[],
  rows: readonly StoredMessage[],
  { userTokens, newestUserTokens = userTokens }: CutOptions,
): StoredMessage[] {
  const keptRows = older.filter((row) => row.kind === "task");
  const newest = rows.findLast((row) => row.kind === "guidance");
  let room = userTokens;
  for (const row of older.filter(({ kind }) => kind === "guidance").toReversed()) {
    const tokens = shownTokens(row);
    room -= tokens;
    // The last message is the agent's current task: a tight budget must not remove it.
    if (room < 0 && !(row === newest && tokens <= newestUserTokens)) break;
    keptRows.push(row);
  }
  return keptRows;
}

/** Tokens of rows as the model sees them. */
export function tokensOf(rows: readonly StoredMessage[]): number {
  return rows.reduce((sum, row) => sum + shownTokens(row), 0);
}
