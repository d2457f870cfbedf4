/** The client's connections to Postgres and Temporal. Waits are bounded; a missing service gives exit code 4 and a fix. */
import { trustNamedAuthorities, ServiceMissing, plainReason } from "../../temporal/service-missing.ts";
import type { Client, Connection } from "@temporalio/client";
import { refuseEarlierTables } from "../../activities/store/migrate.ts";
import { ownerOfRole } from "../../activities/store/client-roles.ts";
import { openStore, type Store } from "../../activities/store/db.ts";
import { withoutPassword } from "../../temporal/probe.ts";
import { refusePooler, postgresMissing } from "../../temporal/postgres-probe.ts";
import { PATIENT, patiently } from "../../temporal/patience.ts";
import { toListenAddress, readPostgresAddress } from "../../activities/store/postgres-address.ts";
import { clientUser } from "../config/config.ts";
import { chosenObjectStore } from "../../temporal/object-store-probe.ts";
import { findServices, settingOf, type LocalServices } from "../setup/services.ts";
import { parseCodecKeys } from "../../temporal/codec.ts";
import { temporalConnection } from "../../temporal/connection.ts";
import { usageError } from "../console/errors.ts";

export interface Services {
  readonly store: Store;
  readonly temporal: Temporal;
  readonly taskQueue: string;
  /** The acting user, if known: owns started sessions, and is named in events. From the Postgres role, else the setting. */
  readonly user?: string | undefined;
  /** A session's address in Temporal's Web UI. */
  readonly uiUrl: (sessionId: string) => string | undefined;
  close(): Promise<void>;
}

/** Connects on first use, so that commands that need only Postgres work without Temporal. */
interface Temporal {
  /** @throws ServiceMissing: at once if it refuses, within 10 s if nothing answers */
  client(): Promise<Client>;
  readonly address: string;
  readonly namespace: string;
}

/**
 * Opens the store and checks that it answers.
 * @param services their addresses; default: from the environment or `longhaul up`
 * @param say told once if a service is slow
 * @throws ServiceMissing: at once if it refuses, within 10 s if nothing answers; WrongSettings for an address that is none; ClientError
 *   (usage) for a wrong LONGHAUL_USER
 */
export async function openServices(
  services: LocalServices = findServices(),
  say?: (line: string) => void,
): Promise<Services> {
  const chosenUser = clientUser();
  trustNamedAuthorities();
  const { store, owner } = await openOwnStore(services.databaseUrl, say);
  if (owner !== undefined && chosenUser !== undefined && chosenUser !== owner) {
    await store.close();
    throw usageError(
      `LONGHAUL_USER is ${chosenUser}, and the role of DATABASE_URL is ${owner}'s.`,
      "Unset LONGHAUL_USER.",
    );
  }
  const temporal = lazyTemporal(services.temporalAddress, say);
  return {
    store,
    temporal,
    taskQueue: services.taskQueue,
    user: owner ?? chosenUser,
    uiUrl: (id) =>
      services.uiUrl === undefined
        ? undefined
        : `${services.uiUrl.replace(/\/$/, "")}/namespaces/${temporal.namespace}/workflows/${id}`,
    close: async () => {
      await Promise.allSettled([temporal.close(), store.close()]);
    },
  };
}

/** @throws ServiceMissing, also behind an unsupported pooler; WrongSettings for an address that is none */
async function openOwnStore(
  url: string,
  say: ((line: string) => void) | undefined,
): Promise<{ readonly store: Store; readonly owner: string | undefined }> {
  let store: Store | undefined;
  try {
    const address = readPostgresAddress(url);
    const connectMs = address.connectTimeoutMs ?? PATIENT.connectMs;
    const objects = chosenObjectStore(settingOf("LONGHAUL_STORE"));
    const opened = openStore({ url, objects, maxConnections: 4, connectTimeoutMs: connectMs });
    store = opened;
    return await patiently(
      "Postgres",
      toListenAddress(address),
      { ...PATIENT, connectMs, say },
      async (timeoutMs) => {
        const client = await opened.pool.connect();
        try {
          await refusePooler(client, url, address.shown, timeoutMs);
          await refuseEarlierTables(client);
        } finally {
          client.release();
        }
        return { store: opened, owner: await ownerOfRole(opened) };
      },
    );
  } catch (error) {
    await store?.close().catch(() => undefined);
    throw postgresMissing(error, {
      address: withoutPassword(url),
      fix: fixOf("DATABASE_URL"),
      isNamed: settingOf("DATABASE_URL") !== undefined,
    });
  }
}

function lazyTemporal(
  address: string,
  say: ((line: string) => void) | undefined,
): Temporal & { close(): Promise<void> } {
  const { connection: options, namespace, listenAddress } = temporalConnection(address);
  const keys = parseCodecKeys(settingOf("LONGHAUL_CODEC_KEYS"));
  let opened: Promise<{ connection: Connection; client: Client }> | undefined;
  const open = async () => {
    // Loading the SDK's client takes 0.2 s of CPU, which commands that need only Postgres avoid.
    const { connectTemporal, temporalClient } = await import("../../temporal/temporal-client.ts");
    let pending: Promise<Connection> | undefined;
    try {
      const connection = await patiently("Temporal", listenAddress, { ...PATIENT, say }, (timeoutMs) => {
        pending = connectTemporal(options, timeoutMs);
        return pending;
      });
      return { connection, client: temporalClient({ connection, namespace }, keys) };
    } catch (error) {
      // A connection that is established too late must not keep the process alive.
      pending?.then((late) => late.close()).catch(() => undefined);
      throw new ServiceMissing({
        service: "Temporal",
        address,
        reason: plainReason(error),
        fix: fixOf("TEMPORAL_ADDRESS"),
        cause: error,
      });
    }
  };
  return {
    address,
    namespace,
    client: async () => {
      opened ??= open();
      // The next caller tries again.
      opened.catch(() => (opened = undefined));
      return (await opened).client;
    },
    close: async () => {
      await opened?.then(({ connection }) => connection.close()).catch(() => undefined);
    },
  };
}

const fixOf = (variable: "DATABASE_URL" | "TEMPORAL_ADDRESS") =>
  settingOf(variable) === undefined
    ? "Bring it up: longhaul up --detach"
    : `Correct ${variable}, or unset it and bring up a server of your own: longhaul up --detach`;
