/** A test's own Temporal development server with a database file, which the test stops and restarts. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { probeTemporal } from "../../worker/connect/probe.ts";
import { within } from "../../worker/connect/patience.ts";
import { freePort } from "../../client/setup/processes.ts";
import { cacheFolder, temporalBinary } from "../../client/setup/temporal-binary.ts";
import { DYNAMIC_CONFIG, NOT_DURABLE } from "../../client/setup/temporal.ts";
import { ownProcess } from "./own-process.ts";

export interface OwnTemporal {
  /** host:port */
  readonly address: string;
  stop(): Promise<void>;
  /** On the same port, with the same database file. */
  start(): Promise<void>;
  close(): Promise<void>;
}

const START_MS = 60_000;

/** @param values of dynamic configuration, `name=value`, in addition to those of the product's own server */
export async function startOwnTemporal(values: readonly string[] = []): Promise<OwnTemporal> {
  const home = mkdtempSync(join(tmpdir(), "longhaul-temporal-"));
  const command = await temporalBinary({ cache: cacheFolder(), say: () => undefined });
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
  const program = { command, args, log: join(home, "temporal.log") };
  const server = ownProcess(
    `Temporal at ${address}`,
    program,
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
