/** Which accounts Postgres needs: one of this machine that may run it, and a role inside it for the worker. */
import { chownSync, readFileSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { run } from "./processes.ts";
import type { Say } from "./progress.ts";
import { ServiceMissing } from "../../temporal/service-missing.ts";
import pg from "pg";
import { readPostgresAddress } from "../../activities/store/postgres-address.ts";

/** Postgres refuses to run as root, so root starts it as the user `postgres`, wherever the project is located. */
export interface Owner {
  /** Wraps a command so that it runs as the owner. */
  wrap(
    command: string,
    args: readonly string[],
  ): { command: string; args: string[]; uid?: number; gid?: number };
  own(path: string): void;
}

/** @param paths programs and folders that the owner must be able to reach */
export async function postgresOwner(paths: readonly string[], say: Say): Promise<Owner> {
  if (process.getuid?.() !== 0) {
    return { wrap: (command, args) => ({ command, args: [...args] }), own: () => {} };
  }
  const { uid, gid } = await postgresUser(say);
  // Another user cannot enter a clone in /root or in a private temporary folder. Only then, the server keeps the one
  // capability that grants access; the alternative would be to open the folders to everyone.
  const closed = !paths.every(reachableByAll);
  const capability = passingCapability();
  return {
    own: (path) => chownSync(path, uid, gid),
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
  const made = await ids();
  if (made !== undefined) return made;
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
export const WORKER_ROLE = "longhaul";

/** Transfers ownership of a database that an earlier version created as the superuser. */
const TAKE_OVER = `do $$
declare found record;
begin
  for found in select nspname as name from pg_namespace
    where nspname !~ '^pg_' and nspname not in ('information_schema', 'public') and nspowner <> '${WORKER_ROLE}'::regrole
  loop execute format('alter schema %I owner to ${WORKER_ROLE}', found.name); end loop;
  for found in select oid::regclass as name from pg_class
    where relkind in ('r', 'p', 'v', 'm', 'S') and relowner <> '${WORKER_ROLE}'::regrole
      and relnamespace not in (select oid from pg_namespace where nspname ~ '^pg_' or nspname = 'information_schema')
      and not exists (select from pg_depend where objid = pg_class.oid and deptype in ('a', 'i', 'e') and relkind = 'S')
  loop execute format('alter table %s owner to ${WORKER_ROLE}', found.name); end loop;
  for found in select oid::regprocedure as name from pg_proc
    where proowner <> '${WORKER_ROLE}'::regrole
      and pronamespace not in (select oid from pg_namespace where nspname ~ '^pg_' or nspname = 'information_schema')
  loop execute format('alter routine %s owner to ${WORKER_ROLE}', found.name); end loop;
  for found in select oid::regtype as name from pg_type
    where typtype in ('e', 'd') and typowner <> '${WORKER_ROLE}'::regrole
      and typnamespace not in (select oid from pg_namespace where nspname ~ '^pg_' or nspname = 'information_schema')
  loop execute format('alter type %s owner to ${WORKER_ROLE}', found.name); end loop;
end $$`;

/**
 * Creates both if they are missing, and transfers an existing database. Idempotent.
 * @param maintenanceUrl of a database that always exists, as a superuser
 * @param password of the worker's role
 */
export async function ensureRoleAndDatabase(
  maintenanceUrl: string,
  database: string,
  password: string,
): Promise<void> {
  const owner = await onDatabase({ url: maintenanceUrl }, async (client) => {
    const { rowCount } = await client.query("select from pg_roles where rolname = $1", [WORKER_ROLE]);
    const verb = rowCount === 0 ? "create" : "alter";
    await client.query(
      `${verb} role ${WORKER_ROLE} login nosuperuser nocreatedb nocreaterole noreplication nobypassrls` +
        ` password ${client.escapeLiteral(password)}`,
    );
    const found = await client.query<{ owner: string }>(
      "select pg_get_userbyid(datdba) as owner from pg_database where datname = $1",
      [database],
    );
    if (found.rows[0] === undefined)
      await client.query(`create database ${client.escapeIdentifier(database)} owner ${WORKER_ROLE}`);
    return found.rows[0]?.owner ?? WORKER_ROLE;
  });
  if (owner === WORKER_ROLE) return;
  await onDatabase({ url: maintenanceUrl, database }, async (client) => {
    // Running sessions hold locks on their tables only briefly.
    await client.query("set lock_timeout = '15s'");
    await client.query("begin");
    await client.query(TAKE_OVER);
    // Last, so that an interrupted attempt is repeated.
    await client.query(`alter database ${client.escapeIdentifier(database)} owner to ${WORKER_ROLE}`);
    await client.query("commit");
  });
}

async function onDatabase<T>(
  { url, ...other }: { readonly url: string; readonly database?: string },
  use: (client: pg.Client) => Promise<T>,
): Promise<T> {
  const client = new pg.Client({ ...readPostgresAddress(url).config, ...other });
  await client.connect();
  try {
    return await use(client);
  } finally {
    await client.end();
  }
}
