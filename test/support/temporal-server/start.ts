/** Temporal in production form: its server, with its state in its own Postgres, both stopped together. */
import { randomInt } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Connection } from "@temporalio/client";
import { freePort, run } from "../../../client/setup/processes.ts";
import type { Say } from "../../../client/setup/progress.ts";
import { probeTemporal } from "../../../temporal/probe.ts";
import { within } from "../../../temporal/patience.ts";
import { closable } from "../closers.ts";
import { ownProcess } from "../own-process.ts";
import type { OwnTemporal } from "../own-temporal.ts";
import { type PostgresServer, startPostgresServer } from "../postgres-server.ts";
import { DATABASES, serverConfig, type ServicePorts, SERVICES } from "./config.ts";
import { type ServerPrograms, temporalServerPrograms } from "./programs.ts";

export interface PostgresTemporal extends OwnTemporal {
  /** 0 while it is stopped. */
  pid(): number;
  /** Its state's Postgres. */
  readonly postgres: PostgresServer;
}

const DYNAMIC_CONFIG = fileURLToPath(new URL("../../../docs/compose/dynamic-config.yaml", import.meta.url));
/** A busy machine's first start, including namespace caches that are refreshed every 10 s. */
const START_MS = 120_000;
const RETENTION_SECONDS = 24 * 60 * 60;

/**
 * With a namespace `default`; the workers add its search attributes.
 * @param options.durable commits are flushed to the disk, for tests in which nothing may be lost
 * @throws ServiceMissing if the server is neither found nor built
 */
export async function startPostgresTemporal(options: {
  durable: boolean;
  say: Say;
}): Promise<PostgresTemporal> {
  const programs = await temporalServerPrograms(options.say);
  const home = mkdtempSync(join(tmpdir(), "longhaul-temporal-server-"));
  const remove = async () => rmSync(home, { recursive: true, force: true });
  return closable(remove, async (add) => {
    const flushed = options.durable ? ["fsync=on", "full_page_writes=on"] : [];
    const postgres = await startPostgresServer({ settings: ["max_connections=100", ...flushed] });
    add(() => postgres.close());
    await makeTables(programs, postgres.port);
    const ports = await freePorts();
    const address = `127.0.0.1:${ports.frontend.grpc}`;
    const config = join(home, "config.yaml");
    const settings = { ports, postgres: `127.0.0.1:${postgres.port}`, dynamicConfig: DYNAMIC_CONFIG };
    writeFileSync(config, serverConfig(settings));
    const server = ownProcess(
      "Temporal's server",
      {
        command: programs.server,
        args: ["--config-file", config, "--allow-no-auth", "start"],
        log: join(home, "temporal.log"),
      },
      () => probeTemporal(address, within(1_500)),
      START_MS,
    );
    add(() => server.stop());
    await server.start(() => connected(address));
    await registerNamespace(address);
    await server.until();
    return {
      address,
      postgres,
      pid: server.pid,
      stop: () => server.stop(),
      start: () => server.start(),
    };
  });
}

async function makeTables({ sql }: ServerPrograms, port: number): Promise<void> {
  for (const [schema, database] of Object.entries(DATABASES)) {
    const connection = ["--endpoint", "127.0.0.1", "--port", String(port), "--user", "postgres"];
    const server = ["--plugin", "postgres12", ...connection];
    const tool = (...args: string[]) => run(sql, [...server, "--database", database, ...args]);
    await tool("create-database");
    await tool("setup-schema", "--version", "0.0");
    await tool("update-schema", "--schema-name", `postgresql/v12/${schema}`);
  }
}

/** The server stores ports as signed 16-bit numbers; higher ones are the system's ephemeral ports. */
const PORTS = { from: 20_000, to: 32_000 } as const;

async function freePorts(): Promise<ServicePorts> {
  const usedPorts = new Set<number>();
  const next = async (): Promise<number> => {
    const port = randomInt(PORTS.from, PORTS.to);
    if (usedPorts.has(port) || (await freePort(port)) !== port) return next();
    usedPorts.add(port);
    return port;
  };
  const ports: Partial<Record<keyof ServicePorts, { grpc: number; membership: number }>> = {};
  for (const name of SERVICES) ports[name] = { grpc: await next(), membership: await next() };
  return ports as ServicePorts;
}

async function connected(address: string): Promise<void> {
  const connection = await Connection.connect({ address, connectTimeout: 1_500 });
  await connection.close();
}

async function registerNamespace(address: string): Promise<void> {
  const connection = await Connection.connect({ address });
  try {
    await connection.workflowService.registerNamespace({
      namespace: "default",
      workflowExecutionRetentionPeriod: { seconds: RETENTION_SECONDS as never },
    });
  } finally {
    await connection.close();
  }
}
