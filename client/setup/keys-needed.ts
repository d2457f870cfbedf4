/** Whether a worker of this shell would lack a key that sessions need: it would fail them, unlike the last one. */
import { runConfigSchema } from "../../activities/config/agent-config.ts";
import type { ModelTarget } from "../../activities/config/model-target.ts";
import { type Environment, missingVariables } from "../../activities/config/providers.ts";
import { openStore, type Store } from "../../activities/store/db.ts";
import { listSessions, type SessionRow } from "../../activities/store/reading.ts";
import { withoutPassword } from "../../worker/connect/probe.ts";
import { ServiceMissing } from "../../worker/connect/service-missing.ts";
import { listNames } from "../console/format.ts";
import { findByReference } from "../lookup/find-by-reference.ts";
import { unlessTableMissing } from "../lookup/unless-table-missing.ts";
import type { LocalServices } from "./services.ts";

/** How many sessions are checked, newest first. */
const LOOKED_AT = 500;

/** No worker is started, since this shell's would lack a key. */
export class KeyMissing extends ServiceMissing {}

export interface KeysNeeded {
  readonly services: LocalServices;
  /** Keys that the worker would have. */
  readonly environment: Environment;
  /** Names of the settings that the last worker had. */
  readonly had: readonly string[];
  /** The command's session, which will ask its model. */
  readonly reference?: string | undefined;
}

/**
 * Keys that a worker would lack: of open sessions only those that the last worker had, of the command's own session any.
 * @returns undefined if nothing is lacking
 */
export async function lackingKeys(needed: KeysNeeded): Promise<KeyMissing | undefined> {
  const { services, environment, had, reference } = needed;
  const lost = had.filter((name) => !environment[name]);
  if (lost.length === 0 && reference === undefined) return undefined;
  const store = openStore({ url: services.databaseUrl, maxConnections: 1 });
  try {
    const [own, open] = await Promise.all([
      reference === undefined ? undefined : meant(store, reference),
      lost.length === 0 ? [] : openSessions(store),
    ]);
    const lacks = [
      ...(own === undefined ? [] : [{ id: own.id, names: missingFor(own, environment) }]),
      ...open.map((row) => ({
        id: row.id,
        names: missingFor(row, environment).filter((name) => lost.includes(name)),
      })),
    ].filter(({ names }) => names.length > 0);
    if (lacks.length === 0) return undefined;
    const names = [...new Set(lacks.flatMap((each) => each.names))];
    const ids = [...new Set(lacks.map(({ id }) => id))];
    return new KeyMissing({
      service: "A worker of this shell",
      address: withoutPassword(services.databaseUrl),
      problem: `would lack ${names.join(" and ")}, which ${listNames(ids)} ${ids.length === 1 ? "needs" : "need"}; none was started`,
      fix: `Set ${names.join(" and ")} in this shell and repeat the command, or start a worker without: longhaul up --detach`,
    });
  } finally {
    await store.close();
  }
}

/** @returns undefined if the reference matches no session: the command reports that */
async function meant({ db }: Store, reference: string): Promise<SessionRow | undefined> {
  return unlessTableMissing(() => findByReference(db, reference)).catch(() => undefined);
}

async function openSessions({ db }: Store): Promise<SessionRow[]> {
  const list = async () =>
    Promise.all(
      (["active", "waiting"] as const).map((status) =>
        listSessions(db, { limit: LOOKED_AT, status, all: true }),
      ),
    );
  return ((await unlessTableMissing(list)) ?? []).flat();
}

/** Keys that a session lacks for all of its models. */
function missingFor({ config }: SessionRow, environment: Environment): string[] {
  const read = runConfigSchema.safeParse(config);
  if (!read.success) return [];
  const targets: readonly ModelTarget[] = [read.data, ...(read.data.fallback ?? [])];
  const lacking = targets.map(({ provider }) =>
    provider === undefined ? [] : missingVariables(provider, environment),
  );
  return lacking.some((names) => names.length === 0) ? [] : (lacking[0] ?? []);
}
