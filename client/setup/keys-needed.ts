/** Checks whether a worker started from this shell would lack a key that sessions need, and so make them fail. */
import { runConfigSchema } from "../../activities/config/agent-config.ts";
import type { ModelTarget } from "../../activities/config/model-target.ts";
import { type Environment, missingVariables } from "../../activities/config/providers.ts";
import { openStore, type Store } from "../../activities/store/db.ts";
import { listSessions, type SessionRow } from "../../activities/store/reading.ts";
import { withoutPassword } from "../../temporal/probe.ts";
import { listNames } from "../console/format.ts";
import { inWords } from "../../activities/text/format.ts";
import { findByReference } from "../lookup/find-by-reference.ts";
import { unlessTableMissing } from "../lookup/unless-table-missing.ts";
import { SettingMissing } from "./state.ts";
import type { LocalServices } from "./services.ts";

/** How many sessions are checked, newest first. */
const LOOKED_AT = 500;

export interface KeysNeeded {
  readonly services: LocalServices;
  /** The variables, including keys, that the worker would have. */
  readonly environment: Environment;
  /** Names of the settings that the last worker had. */
  readonly had: readonly string[];
  /** The command's session, which will call its model. */
  readonly reference?: string | undefined;
}

/**
 * Finds keys that a worker would lack. For open sessions, only keys that the last worker had count; for the command's own
 * session, all of them do.
 * @returns undefined if nothing is lacking
 */
export async function lackingKeys(needed: KeysNeeded): Promise<SettingMissing | undefined> {
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
    const names = [...new Set(lacks.flatMap((lack) => lack.names))];
    const ids = [...new Set(lacks.map(({ id }) => id))];
    return new SettingMissing({
      service: "A worker started from this shell",
      address: withoutPassword(services.databaseUrl),
      problem: `would lack ${inWords(names)}, which ${listNames(ids)} ${ids.length === 1 ? "needs" : "need"}; none was started`,
      fix: `Set ${inWords(names)} in this shell and repeat the command, or start a worker without: longhaul up --detach`,
    });
  } finally {
    await store.close();
  }
}

/** The session that is meant. @returns undefined if there is no match: the command reports that */
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

/** Missing keys of the session's main model; none if any of its models has all its keys. */
function missingFor({ config }: SessionRow, environment: Environment): string[] {
  const read = runConfigSchema.safeParse(config);
  if (!read.success) return [];
  const targets: readonly ModelTarget[] = [read.data, ...(read.data.fallback ?? [])];
  const lacking = targets.map(({ provider }) =>
    provider === undefined ? [] : missingVariables(provider, environment),
  );
  return lacking.some((names) => names.length === 0) ? [] : (lacking[0] ?? []);
}
