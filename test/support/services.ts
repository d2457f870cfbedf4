/** The services of one test run, shared by the projects that need them. */
import type { GiteaPrograms } from "./gitea/programs.ts";
import { randomBytes } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import pg from "pg";
import { agentConfigSchema } from "../../activities/config/agent-config.ts";
import { migrateStore, openStore } from "../../activities/store/db.ts";
import { ownPostgresUrl } from "../../client/setup/postgres.ts";
import { birthOf } from "../../client/setup/processes.ts";
import {
  bringDown,
  bringUp,
  findServices,
  type LocalServices,
  type Need,
  projectHome,
} from "../../client/setup/services.ts";

declare module "vitest" {
  interface ProvidedContext {
    /** A database server on which `createTestDatabase` makes databases. */
    databaseServer: string;
    /** Name of the database that has the migrations applied. */
    databaseTemplate: string;
    /** host:port */
    temporalAddress: string;
    sandboxImage: string;
    /** Empty = the default socket. */
    dockerHost: string;
    gitea: GiteaPrograms;
    /** File with the prebuilt workflow code. */
    workflowBundle: string;
  }
}

export const say = (line: string) => process.stderr.write(`[set-up] ${line}\n`);

/** True if the developer's services are used: DATABASE_URL, TEMPORAL_ADDRESS and SANDBOX_IMAGE. Nothing is started. */
function lent(): boolean {
  return process.env["LONGHAUL_TEST_SERVICES"] === "dev";
}

/** Starts what is needed, on free ports, with data in a folder of this run. @throws ServiceMissing */
export async function startServices(home: string, need: readonly Need[]): Promise<LocalServices> {
  if (!lent()) {
    const services = await bringUp({ home, ports: "free", say, need });
    // Tests create databases, which the worker's role may not.
    return { ...services, databaseUrl: ownPostgresUrl(home, "superuser") ?? services.databaseUrl };
  }
  const services = findServices(home);
  return { ...services, sandboxImage: services.sandboxImage ?? agentConfigSchema.parse({}).sandbox.image };
}

/** A folder for this run's data, named after our process so that a later run can tell whether it has ended. */
export function newTestHome(): string {
  const home = join(projectHome, `test-${process.pid}-${randomBytes(3).toString("hex")}`);
  mkdirSync(home, { recursive: true });
  return home;
}

/** Stops the services and removes the data. */
export async function endServices(home: string): Promise<void> {
  if (!existsSync(home)) return;
  await bringDown({ home, say: () => {} });
  rmSync(home, { recursive: true, force: true, maxRetries: 3 });
}

/** Removes what earlier runs left that were killed before their clean-up. */
export async function sweepOldRuns(): Promise<void> {
  if (!existsSync(projectHome)) return;
  for (const name of readdirSync(projectHome)) {
    const pid = /^test-(\d+)-/.exec(name)?.[1];
    if (pid !== undefined && (await birthOf(Number(pid))) === undefined)
      await endServices(join(projectHome, name));
  }
}

/** Creates the template of the test databases. */
export async function makeTemplate(databaseUrl: string): Promise<string> {
  const name = `template_${process.pid}_${randomBytes(3).toString("hex")}`;
  const store = openStore({ url: await createDatabase(databaseUrl, name), maxConnections: 1 });
  try {
    await migrateStore(store);
  } finally {
    await store.close();
  }
  return name;
}

/** @param template another database, which it begins as a copy of @returns its URL */
export async function createDatabase(server: string, name: string, template?: string): Promise<string> {
  const copied = template === undefined ? "" : ` template ${template}`;
  await onServer(server, (client) => client.query(`create database ${name}${copied}`));
  const url = new URL(server);
  url.pathname = `/${name}`;
  return url.href;
}

export async function dropDatabase(databaseUrl: string, name: string): Promise<void> {
  await onServer(databaseUrl, (client) => client.query(`drop database if exists ${name} with (force)`));
}

/** Runs `use` on its own connection. */
export async function onServer<T>(databaseUrl: string, use: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: databaseUrl });
  await client.connect();
  try {
    return await use(client);
  } finally {
    await client.end();
  }
}
