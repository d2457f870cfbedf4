/** Removes the boxes of sessions that are over and ends the rows of those that nobody else does, at start and now and then. */
import { Client, WorkflowNotFoundError } from "@temporalio/client";
import type { NativeConnection } from "@temporalio/worker";
import type { SandboxHost } from "../activities/sandbox/sandbox.ts";
import { findBox } from "../activities/store/boxes.ts";
import type { Queryable, Store } from "../activities/store/db.ts";
import { activeSessionIds, endAbandoned, findSession, lockedSession } from "../activities/store/sessions.ts";
import type { Logger } from "./logger.ts";

export interface ReaperOptions {
  readonly host: SandboxHost;
  readonly store: Store;
  readonly connection: NativeConnection;
  readonly namespace: string;
  readonly logger: Logger;
  readonly everyMs: number;
}

/** @returns a function that ends it and waits for a round under way */
export function startReaper(options: ReaperOptions): () => Promise<void> {
  const client = new Client({ connection: options.connection, namespace: options.namespace });
  let round: Promise<void> = Promise.resolve();
  const reap = () => {
    round = round.then(async () => {
      try {
        await reapBoxes({ ...options, client });
        await endLeftSessions({ ...options, client });
      } catch (error) {
        // The next round looks again.
        const reason = error instanceof Error ? error.message : String(error);
        options.logger.warn({ reason }, "boxes could not be looked through");
      }
    });
  };
  reap();
  const timer = setInterval(reap, options.everyMs);
  return () => {
    clearInterval(timer);
    return round;
  };
}

/**
 * One round: removes the boxes of this host whose session is over, or goes on in a box of another host. Each is judged
 * and removed under the session's lock, which opening a box takes too: a session that is taken up again meanwhile keeps
 * its box, or gets a new one.
 * @returns the sessions whose boxes were removed
 */
export async function reapBoxes(
  options: Pick<ReaperOptions, "host" | "store" | "logger"> & { readonly client: Client },
): Promise<string[]> {
  const { host, store, client, logger } = options;
  const removed: string[] = [];
  for (const id of await host.sessions()) {
    // A session we have no row of is another installation's.
    if ((await findSession(store.db, id)) === undefined) continue;
    const why = await lockedSession(store, id, async (tx) => {
      const reason = (await hasMoved(tx, host, id))
        ? "moved"
        : (await isOver(tx, client, id))
          ? "over"
          : undefined;
      if (reason !== undefined) await host.remove(id);
      return reason;
    });
    if (why === undefined) continue;
    removed.push(id);
    logger.info({ session: id }, why === "over" ? REMOVED_OVER : REMOVED_MOVED);
  }
  return removed;
}

/**
 * Ends the rows of sessions whose run was ended from outside after its box was gone: no box leads to them. Those of
 * hosts that are gone, too.
 */
async function endLeftSessions(options: Pick<ReaperOptions, "store"> & { readonly client: Client }) {
  const { store, client } = options;
  for (const id of await activeSessionIds(store.db)) {
    // Nearly all run: they are not locked for it.
    const { status } = await client.workflow
      .getHandle(id)
      .describe()
      .catch(() => ({ status: { name: "RUNNING" } }));
    if (status.name !== "RUNNING") await lockedSession(store, id, (tx) => isOver(tx, client, id));
  }
}

const REMOVED_OVER = "removed the box of a session that is over";
const REMOVED_MOVED = "removed the box of a session that goes on on another host";

/** By the volume: only the one with the session's files is its own, whatever the hosts are called. */
async function hasMoved(tx: Queryable, host: SandboxHost, id: string): Promise<boolean> {
  const [session, box] = [await findSession(tx, id), await findBox(tx, id)];
  if (session?.container === undefined || box === undefined) return false;
  const volume = await host.volume(id);
  return volume !== undefined && box.volume !== volume;
}

/**
 * By the run's state, not the row's: a terminated workflow never wrote its end. A workflow that is not to be found may
 * be another namespace's: its box stays.
 */
async function isOver(tx: Queryable, client: Client, id: string): Promise<boolean> {
  const session = await findSession(tx, id);
  if (session === undefined) return false;
  try {
    const { status } = await client.workflow.getHandle(id).describe();
    if (status.name === "RUNNING") return false;
    // Its own finaliser never ran: without this it would stand there as active for ever.
    if (session.status === "active") {
      const message = `The run ended in Temporal as ${status.name.toLowerCase()}; the conversation is kept, its files as last saved.`;
      await endAbandoned(tx, id, { status: status.name === "TERMINATED" ? "cancelled" : "failed", message });
    }
    return true;
  } catch (error) {
    if (!(error instanceof WorkflowNotFoundError)) throw error;
    return session.status !== "active" && session.status !== "waiting";
  }
}
