/**
 * How much a session's saves may take in Postgres (`limits.maxSaved`). From then on each save replaces the one before: the
 * newest files are always kept, but a reset can no longer restore some of the steps in between.
 */
import { bytesOf } from "../config/sizes.ts";
import type { Checkpoint } from "../store/checkpoints.ts";
import type { Queryable } from "../store/db.ts";
import type { NewEvent } from "../store/event.ts";
import { besidesNewest, removeSave, savedBytes } from "../store/saved-bytes.ts";
import { addNotice } from "../store/sandboxes.ts";
import type { Session } from "../store/sessions.ts";

export interface Room {
  /** The checkpoint that the save is the difference to. */
  readonly base: Checkpoint | undefined;
  /** The save that this one replaces. */
  readonly replaced: Checkpoint | undefined;
  readonly savedBytes: number;
  readonly maxBytes: number;
}

/** Whether there is room for one more save, which may be larger than what is left. */
export async function roomFor(
  db: Queryable,
  { id, config }: Pick<Session, "id" | "config">,
  found: { readonly latest: Checkpoint | undefined; readonly base: Checkpoint | undefined },
): Promise<Room> {
  const { latest, base } = found;
  const maxBytes = bytesOf(config.limits.maxSaved);
  const room = { base, replaced: undefined, savedBytes: await savedBytes(db, id), maxBytes };
  // A step that is saved again replaces its own row anyway.
  if (room.savedBytes < maxBytes || latest === undefined || latest !== base) return room;
  const before = await besidesNewest(db, latest);
  return before === undefined ? room : { ...room, base: before.base, replaced: latest };
}

/** Removes what the save replaces; once, when the room runs out, informs the model and watchers. */
export async function settleRoom(
  tx: Queryable,
  save: { readonly sessionId: string; readonly step: number; readonly id: number; readonly bytes: number },
  { replaced, savedBytes: before, maxBytes }: Room,
): Promise<NewEvent[]> {
  if (replaced !== undefined) await removeSave(tx, replaced, save.id);
  const bytes = before + save.bytes;
  if (replaced !== undefined || before >= maxBytes || bytes < maxBytes) return [];
  await addNotice(tx, save.sessionId, fullNotice(maxBytes));
  return [{ type: "sandbox:saves-full", step: save.step, data: { bytes, maxBytes } }];
}

function fullNotice(maxBytes: number): string {
  return `[The saves of this workspace take ${Math.round(maxBytes / 2 ** 20)} MiB, which is the limit of a session. From now on only the newest files are saved, and single steps can no longer be restored. Put files that can be made again, such as build output and downloads, into /tmp.]`;
}
