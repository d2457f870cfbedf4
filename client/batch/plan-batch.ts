/** Decides what remains to be done when a file is started again. Pure. */
import type { ItemRow } from "../../activities/store/batches.ts";
import type { BatchItem } from "./parse-batch.ts";

export interface BatchPlan {
  /** Missing, failed or changed items: each gets a new session with this attempt number. */
  readonly starts: readonly { readonly item: BatchItem; readonly attempt: number }[];
  /** Positions of all other items in the file; 0 for items that it no longer contains. */
  readonly places: readonly { readonly itemId: string; readonly ordinal: number }[];
  readonly completed: number;
  /** Ids of items that changed while their sessions run. */
  readonly busy: readonly string[];
}

type Known = Pick<ItemRow, "itemId" | "digest" | "status" | "attempt">;

export function planBatch(items: readonly BatchItem[], known: readonly Known[]): BatchPlan {
  const rows = new Map(known.map((row) => [row.itemId, row]));
  const inFile = new Set(items.map(({ id }) => id));
  const isChanged = ({ id, digest }: BatchItem) => rows.get(id)?.digest !== digest;
  const isKept = (item: BatchItem) => {
    const status = rows.get(item.id)?.status;
    return !isChanged(item) && (status === "completed" || status === "running");
  };
  return {
    starts: items
      .filter((item) => !isKept(item))
      .map((item) => ({ item, attempt: nextAttempt(rows.get(item.id)) })),
    places: [
      ...items.filter(isKept).map(({ id, ordinal }) => ({ itemId: id, ordinal })),
      ...known.filter(({ itemId }) => !inFile.has(itemId)).map(({ itemId }) => ({ itemId, ordinal: 0 })),
    ],
    completed: items.filter((item) => isKept(item) && rows.get(item.id)?.status === "completed").length,
    busy: items
      .filter((item) => isChanged(item) && rows.get(item.id)?.status === "running")
      .map(({ id }) => id),
  };
}

/** An attempt that never began is repeated under the same number. */
function nextAttempt(row: Known | undefined): number {
  if (row === undefined) return 1;
  return row.status === "pending" ? Math.max(1, row.attempt) : row.attempt + 1;
}

/** Whether the file has the content that the batch was started with. */
export function isSameBatch(
  items: readonly BatchItem[],
  known: readonly Pick<ItemRow, "itemId" | "digest" | "ordinal">[],
): boolean {
  const live = known.filter(({ ordinal }) => ordinal > 0);
  const digests = new Map(live.map(({ itemId, digest }) => [itemId, digest]));
  return live.length === items.length && items.every(({ id, digest }) => digests.get(id) === digest);
}

/** The id of an item's session; the first attempt has no number. */
export const itemSessionId = (batch: string, itemId: string, attempt: number): string =>
  attempt === 1 ? `${batch}-${itemId}` : `${batch}-${itemId}.${attempt}`;
