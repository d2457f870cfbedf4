/** Postgres refuses to run as root, so root starts it as the user `postgres`, wherever the project is located. */
import { chownSync, readFileSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { run } from "./processes.ts";
import type { Say } from "./progress.ts";
import { ServiceMissing } from "../../temporal/service-missing.ts";

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
