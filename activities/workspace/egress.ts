/**
 * While a call runs in a sandbox, keeps the proxy's allowed names equal to the session's configuration and rows, and
 * records refused requests.
 */
import { log } from "@temporalio/activity";
import { closedAddress, expandDomains } from "../config/egress-domains.ts";
import { listedRegistries } from "../config/registry-settings.ts";
import { andMore, takeFirst } from "../text/lists.ts";
import type { RefusedRequests, Sandbox } from "../sandbox/sandbox.ts";
import { allowedDomains } from "../store/egress.ts";
import type { Queryable } from "../store/db.ts";
import type { NewEvent } from "../store/event.ts";
import { appendEvents } from "../store/events.ts";
import type { Session } from "../store/sessions.ts";
import type { WorkspaceDeps } from "../runtime/deps.ts";

/** How soon `longhaul allow` takes effect for a running command, and how soon a refusal is reported. */
const POLL_MS = 1_000;
/** Hosts that one result names to the model. */
const MAX_NAMED = 5;

/** Sends the proxy the session's current names; starts the proxy if it is gone. */
export async function allowListed(db: Queryable, session: Session, sandbox: Sandbox): Promise<void> {
  if (sandbox.egress === undefined) return;
  const { domains } = session.config.sandbox;
  const registries = listedRegistries(session.config.sandbox);
  const names = [...domains, ...registries, ...(await allowedDomains(db, session.id))];
  await sandbox.egress.allow(expandDomains(names));
}

/** Watches one call. A proxy that fails meanwhile is started again at the next check, and does not fail the call. */
export function watchEgress(deps: Pick<WorkspaceDeps, "store">, session: Session, step: number) {
  const { db } = deps.store;
  const seen: RefusedRequests[] = [];
  // A name that resolves to a private address is refused by that address, and only once it is listed.
  const canBeAllowed = ({ host, reason }: RefusedRequests) =>
    reason === BY_LIST && closedAddress(host, session.config.sandbox.allow) === undefined;
  let watched: Sandbox | undefined;
  let timer: NodeJS.Timeout | undefined;
  let polling: Promise<void> = Promise.resolve();

  async function pollProxy(sandbox: Sandbox): Promise<void> {
    try {
      await allowListed(db, session, sandbox);
      const refused = await sandbox.egress?.refused();
      if (refused === undefined || refused.length === 0) return;
      seen.push(...refused);
      await appendEvents(
        db,
        session.id,
        session.epoch,
        refused.map((requests) => denied(session.id, step, requests, canBeAllowed(requests))),
      );
    } catch (error) {
      log.warn("the egress proxy did not answer; it is asked again", { reason: String(error) });
    }
  }

  return {
    /** Begins to watch the first sandbox that it is given, if that has a list. */
    async begin(sandbox: Sandbox): Promise<void> {
      if (watched !== undefined || sandbox.egress === undefined) return;
      watched = sandbox;
      await allowListed(db, session, sandbox);
      let busy = false;
      timer = setInterval(() => {
        if (busy) return;
        busy = true;
        polling = pollProxy(sandbox).finally(() => (busy = false));
      }, POLL_MS);
    },
    /** Checks once more. @returns what was refused, for the model; undefined if nothing was */
    async end(): Promise<string | undefined> {
      if (watched === undefined) return undefined;
      clearInterval(timer);
      await polling;
      await pollProxy(watched);
      return seen.length === 0 ? undefined : noteFor(session.id, seen, seen.some(canBeAllowed));
    },
    /** Whether a person could have allowed what was refused. */
    get asks(): boolean {
      return seen.some(canBeAllowed);
    },
    stop(): void {
      clearInterval(timer);
    },
  };
}

function denied(
  sessionId: string,
  step: number,
  { host, port, reason, count }: RefusedRequests,
  canBeAllowed: boolean,
): NewEvent {
  const allow = canBeAllowed ? { allow: `longhaul allow ${sessionId} ${host}` } : {};
  return { type: "egress:denied", step, data: { host, port, reason, count, ...allow } };
}

const BY_LIST = "blocked-by-allowlist";

function noteFor(sessionId: string, seen: readonly RefusedRequests[], canBeAllowed: boolean): string {
  const hosts = [...new Set(seen.map(({ host, port, reason }) => `${host}:${port} (${reason})`))];
  const { shown, more } = takeFirst(hosts, MAX_NAMED);
  const fix = canBeAllowed ? ` Only a person can allow a name: longhaul allow ${sessionId} NAME.` : "";
  return `[The sandbox's network refused ${shown.join(", ")}${andMore(more)}.${fix}]`;
}
