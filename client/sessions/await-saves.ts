/** Files are saved beside the next step: who goes back to a step wants those of the step before to be there. */
import { findSandbox } from "../../activities/store/sandboxes.ts";
import type { Database } from "../../activities/store/db.ts";
import { until } from "../../worker/connect/until.ts";

/** How long a save in progress is waited for. Source: ours; most take a second. */
const SAVE_MS = 10_000;
const POLL_MS = 100;

/** Waits until no save of the session is in progress, for a while. */
export async function awaitSaves(db: Database, sessionId: string): Promise<void> {
  await until(async () => ((await findSandbox(db, sessionId))?.savesBegun ?? 0) === 0, SAVE_MS, POLL_MS);
}
