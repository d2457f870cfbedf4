/** Removes the boxes of sessions that are over, at start and now and then: what a killed worker could not. */
import { Client, WorkflowNotFoundError } from "@temporalio/client";
import type { NativeConnection } from "@temporalio/worker";
import type { SandboxHost } from "../activities/sandbox/sandbox.ts";
import type { Store } from "../activities/store/db.ts";
import { endAbandoned, findSession } from "../activities/store/sessions.ts";
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
  const { host, logger } = options;
  const client = new Client({ connection: options.connection, namespace: options.namespace });
  let round: Promise<void> = Promise.resolve();
  const reap = () => {
    round = round.then(async () => {
      try {
        const { removed } = await host.reap((id) => isOver(options.store, client, id));
        if (removed.length > 0) logger.info({ removed }, "removed the boxes of sessions that are over");
      } catch (error) {
        // The next round looks again.
        const reason = error instanceof Error ? error.message : String(error);
        logger.warn({ reason }, "boxes could not be looked through");
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
 * By the run's state, not the row's: a terminated workflow never wrote its end. A session we have no row of is another
 * installation's, and a workflow that is not to be found may be another namespace's: its box stays.
 */
async function isOver(store: Store, client: Client, id: string): Promise<boolean> {
  const session = await findSession(store.db, id);
  if (session === undefined) return false;
  try {
    const { status } = await client.workflow.getHandle(id).describe();
    if (status.name === "RUNNING") return false;
    // Its own finaliser never ran: without this it would stand there as active for ever.
    if (session.status === "active") {
      const message = `The run ended in Temporal as ${status.name.toLowerCase()}; the conversation is kept, its files as last saved.`;
      await endAbandoned(store.db, id, {
        status: status.name === "TERMINATED" ? "cancelled" : "failed",
        message,
      });
    }
    return true;
  } catch (error) {
    if (!(error instanceof WorkflowNotFoundError)) throw error;
    return session.status !== "active" && session.status !== "waiting";
  }
}
