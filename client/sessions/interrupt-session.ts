/** Aborts the step in flight of a session that runs, and says what was kept of it. */
import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { databaseNow, readKept, type Kept } from "../../activities/store/kept.ts";
import { withTimeout } from "../../worker/connect/with-timeout.ts";
import { interruptSignal, statusQuery } from "../../workflows/messages.ts";
import type { Services } from "../connect/connection.ts";
import { withRunning } from "./running-session.ts";
import { announceMessage } from "./send-guidance.ts";

const POLL_MS = 100;
/** How long a worker may take to answer before the interrupt is left with Temporal. */
const REPLY_MS = 5_000;
/** How long the step may take to end. */
const MAX_WAIT_MS = 20_000;

export interface Interrupted extends Kept {
  /** False where no worker took it yet: Temporal keeps it until one does. */
  readonly acknowledged: boolean;
}

/** @throws ClientError (impossible) where there is no such session, or it does not run */
export async function interruptSession(
  services: Services,
  id: string,
  text: string | undefined,
): Promise<Interrupted> {
  const { db } = services.store;
  const since = await databaseNow(db);
  const message = text === undefined ? undefined : { id: randomUUID(), text };
  const acknowledged = await withRunning(services, id, async (handle) => {
    await handle.signal(interruptSignal, message);
    if (message !== undefined) await announceMessage(services, id, message);
    const begun = performance.now();
    for (;;) {
      const view = await withTimeout(handle.query(statusQuery), REPLY_MS).catch(() => undefined);
      if (view === undefined) return false;
      if (view.interrupting !== true || performance.now() - begun > MAX_WAIT_MS) return true;
      await sleep(POLL_MS);
    }
  });
  return { acknowledged, ...(await readKept(db, id, since)) };
}
