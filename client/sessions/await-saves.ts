/** Files are saved in parallel with the next step: going back to a step needs the save of the step before. */
import { findSandbox } from "../../activities/store/sandboxes.ts";
import type { Database } from "../../activities/store/db.ts";
import { until } from "../../worker/connect/until.ts";

/** How long to wait for a save in progress. Source: ours; most take a second. */
const SAVE_MS = 10_000;
const POLL_MS = 100;

/** Waits until no save of the session is in progress, for a while. */
export async function awaitSaves(db: Database, sessionId: string): Promise<void> {
  await until(async () => ((await findSandbox(db, sessionId))?.savesBegun ?? 0) === 0, SAVE_MS, POLL_MS);
}
