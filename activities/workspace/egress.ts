/**
 * While a call runs in a sandbox, keeps the proxy's allowed names equal to the session's configuration and rows, and
 * records refused requests.
 */
import { log } from "@temporalio/activity";
import { closedAddress, expandDomains } from "../config/egress-domains.ts";
import { listedRegistries } from "../config/registry-settings.ts";
import { andMore, takeFirst } from "../text/lists.ts";
import type { KeyUse, RefusedRequests, Sandbox } from "../sandbox/sandbox.ts";
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

/** The patterns of names that a session with a list may ask for now: configured, of its registries, and allowed since. */
export async function listedNames(db: Queryable, session: Session): Promise<string[]> {
  const { domains } = session.config.sandbox;
  const registries = listedRegistries(session.config.sandbox);
  return expandDomains([...domains, ...registries, ...(await allowedDomains(db, session.id))]);
}

/**
 * Sends the proxy the session's current names; starts the proxy if it is gone. A sandbox on the bridge reaches every public name
 * without it too.
 */
export async function allowListed(db: Queryable, session: Session, sandbox: Sandbox): Promise<void> {
  if (sandbox.egress === undefined) return;
  const isOpen = session.config.sandbox.network === "bridge";
  await sandbox.egress.allow(isOpen ? ["*"] : await listedNames(db, session));
}

/** Watches one call. A proxy that fails meanwhile is started again at the next check, and does not fail the call. */
export function watchEgress(deps: Pick<WorkspaceDeps, "store">, session: Session, step: number) {
  const { db } = deps.store;
  const seen: RefusedRequests[] = [];
  const keysRefused: KeyUse[] = [];
  // A name that resolves to a private address is refused by that address, and only once it is listed.
  const canBeAllowed = ({ host, reason }: RefusedRequests) =>
    reason === BY_LIST && closedAddress(host, session.config.sandbox.allow) === undefined;
  let watched: Sandbox | undefined;
  let timer: NodeJS.Timeout | undefined;
  let polling: Promise<void> = Promise.resolve();

  async function pollProxy(sandbox: Sandbox): Promise<void> {
    try {
      await allowListed(db, session, sandbox);
      const refused = (await sandbox.egress?.refused()) ?? [];
      const hasKeys = (session.config.sandbox.keys ?? []).length > 0;
      const uses = (hasKeys ? await sandbox.egress?.keyUses() : undefined) ?? [];
      if (refused.length > 0 || uses.length > 0) await note(refused, uses);
    } catch (error) {
      log.warn("the egress proxy did not answer; it is asked again", { reason: String(error) });
    }
  }

  async function note(refused: readonly RefusedRequests[], uses: readonly KeyUse[] = []): Promise<void> {
    seen.push(...refused);
    keysRefused.push(...uses.filter(({ what }) => what === "refused"));
    await appendEvents(db, session.id, session.epoch, [
      ...refused.map((requests) => denied(session.id, step, requests, canBeAllowed(requests))),
      ...uses.map((use) => keyEvent(step, use)),
    ]);
  }

  return {
    /** Records a request of the worker's own for the session that its list refused. */
    unlisted: ({ host, port }: Pick<RefusedRequests, "host" | "port">): Promise<void> =>
      note([{ host, port, reason: BY_LIST, count: 1 }]),
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
      clearInterval(timer);
      await polling;
      if (watched !== undefined) await pollProxy(watched);
      const notes = [
        ...(seen.length === 0 ? [] : [noteFor(session.id, seen, seen.some(canBeAllowed))]),
        ...(keysRefused.length === 0 ? [] : [keyNote(keysRefused)]),
      ];
      return notes.length === 0 ? undefined : notes.join("\n");
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

function keyEvent(
  step: number,
  { what, key, host, method, path, status, unread, reason, count }: KeyUse,
): NewEvent {
  const request = { key, host, method, path };
  if (what === "refused")
    return { type: "egress:key-refused", step, data: { ...request, reason: reason ?? "path", count } };
  const hidden = unread === undefined ? {} : { unread };
  return { type: "egress:key-used", step, data: { ...request, status: status ?? 0, ...hidden, count } };
}

/** What the events name as a key that a session had and this worker does not have any more. */
export const keyGone = (step: number, key: string): NewEvent => ({
  type: "egress:key-refused",
  step,
  data: { key, host: "", method: "", path: "", reason: "removed", count: 1 },
});

const WHY_NO_KEY: Readonly<Record<string, string>> = {
  method: "its method is not among the key's, so it went on without the key",
  path: "its path is not among the key's, so it went on without the key",
  host: "it named another host than its connection",
  http2: "only HTTP/1.1 is spoken there",
  certificate: "one side did not accept the other's certificate",
};

function keyNote(refused: readonly KeyUse[]): string {
  const kinds = new Map(refused.map((use) => [`${use.key} ${use.reason}`, use]));
  const { shown, more } = takeFirst([...kinds.values()], MAX_NAMED);
  const lines = shown.map(({ key, host, method, path, reason = "path" }) => {
    const request = method === "" ? `a connection to ${host}` : `${method} ${host}${path}`;
    return `${request} did not use the key ${key}: ${WHY_NO_KEY[reason] ?? reason}`;
  });
  return `[${lines.join("; ")}${andMore(more)}. Only the operator can change what a key is for.]`;
}

const BY_LIST = "blocked-by-allowlist";

function noteFor(sessionId: string, seen: readonly RefusedRequests[], canBeAllowed: boolean): string {
  const hosts = [...new Set(seen.map(({ host, port, reason }) => `${host}:${port} (${reason})`))];
  const { shown, more } = takeFirst(hosts, MAX_NAMED);
  const fix = canBeAllowed ? ` Only a person can allow a name: longhaul allow ${sessionId} NAME.` : "";
  return `[The sandbox's network refused ${shown.join(", ")}${andMore(more)}.${fix}]`;
}
