/** Announces who acted on a session, if this client knows its user. */
import type { NewEvent } from "../../activities/store/event.ts";
import { appendEvents } from "../../activities/store/events.ts";
import { readFigures, type SessionRow } from "../../activities/store/reading.ts";
import { wakeWatchers } from "../../activities/store/watching.ts";
import type { Services } from "../connect/connection.ts";

type PersonsAction =
  | "interrupt"
  | "cancel"
  | "pull"
  | "apply"
  | "compact"
  | "undo-compaction"
  | "retry"
  | "purge";

/** Writes `person:acted`; does nothing without a user. */
export async function recordAction(
  { store, user }: Pick<Services, "store" | "user">,
  row: Pick<SessionRow, "id" | "epoch">,
  action: PersonsAction,
): Promise<void> {
  if (user === undefined) return;
  await recordNow({ store }, row, (step) => ({ type: "person:acted", step, data: { action, by: user } }));
}

/** Writes an event at the session's current step, and wakes its watchers. */
export async function recordNow(
  { store }: Pick<Services, "store">,
  { id, epoch }: Pick<SessionRow, "id" | "epoch">,
  eventAt: (step: number) => NewEvent,
): Promise<void> {
  const step = (await readFigures(store.db, [id])).get(id)?.step ?? 0;
  await appendEvents(store.db, id, epoch, [eventAt(step)]);
  await wakeWatchers(store, id);
}
