/** Aborts the step in flight of a running session, and reports what was kept of it. */
import { randomUUID } from "node:crypto";
import { databaseNow, readKept, type Kept } from "../../activities/store/stopped-step.ts";
import { senderOf } from "../../activities/contract/guidance.ts";
import type { SessionRow } from "../../activities/store/reading.ts";
import { readWaiting } from "../../activities/store/waiting-messages.ts";
import { until } from "../../temporal/until.ts";
import { askWithin } from "../../temporal/with-timeout.ts";
import { interruptSignal, statusQuery, type SessionView } from "../../workflows/messages.ts";
import { clientSanitizer } from "../config/config.ts";
import { usageError } from "../console/errors.ts";
import type { Services } from "../connect/connection.ts";
import { withRunning } from "./running-session.ts";
import { announce } from "./send-guidance.ts";
import { recordAction } from "./record-action.ts";

const POLL_MS = 100;
/** How long to wait for a worker before the interrupt is left with Temporal. */
const REPLY_MS = 5_000;
const MAX_WAIT_MS = 20_000;

export interface Interrupted extends Kept {
  /** False if no worker received it yet: Temporal keeps it until one does. */
  readonly acknowledged: boolean;
  /** How many messages waited before: the session continues with them. */
  readonly waiting: number;
}

/** Longer ones go through `say`, which stores them. */
const MAX_BYTES = 16_384;

/** A person's text, checked for its length. @throws ClientError (usage) if it is too long */
export function interruptMessage(text: string, reference: string): string {
  if (Buffer.byteLength(text) > MAX_BYTES) {
    throw usageError(
      `The message has more than ${MAX_BYTES} bytes: nothing was sent.`,
      `Say it first (longhaul say ${reference} -), then interrupt without a message.`,
    );
  }
  return clientSanitizer().clean(text);
}

/** @throws ClientError (impossible) if the session does not run, (missing) as `requireKey` */
export async function interruptSession(
  services: Services,
  row: SessionRow,
  text: string | undefined,
): Promise<Interrupted> {
  const { db } = services.store;
  const [since, waiting] = await Promise.all([databaseNow(db), readWaiting(db, row.id)]);
  // An empty message would be announced but never delivered: the run does not accept one.
  const message =
    text === undefined || text.trim() === ""
      ? undefined
      : { id: randomUUID(), text, ...senderOf({ by: services.user }) };
  const acknowledged = await withRunning(services, row, async (handle) => {
    await handle.signal(interruptSignal, message);
    await recordAction(services, row, "interrupt");
    if (message !== undefined) await announce(services, row, message);
    let view: SessionView | undefined;
    const hasStopped = async () => {
      const asked = askWithin(handle.client, REPLY_MS, () => handle.query(statusQuery));
      view = await asked.catch(() => undefined);
      // If the run has ended meanwhile, waiting longer is useless.
      return view?.interrupting !== true || (view.status !== "active" && view.status !== "waiting");
    };
    await until(hasStopped, MAX_WAIT_MS, POLL_MS);
    return view !== undefined;
  });
  return { acknowledged, waiting: waiting.length, ...(await readKept(db, row.id, since)) };
}
