/** Settings that protect everyone who uses the local worker: no worker without them takes its place unasked. */
import { createHash } from "node:crypto";
import { ServiceMissing } from "../../temporal/service-missing.ts";
import type { Environment } from "../config/environment.ts";
import { inWords } from "../console/format.ts";
import type { RunningService } from "./state.ts";

/** Each with the value that protects no one, as an unset one does. */
const PROTECTIONS: Readonly<Record<string, string | undefined>> = {
  LONGHAUL_POLICY: undefined,
  LONGHAUL_CODEC_KEYS: undefined,
  LONGHAUL_HISTORY: "full",
  // These two values are the local worker's defaults.
  LONGHAUL_OLD_RUNC: "warn",
  LONGHAUL_ALLOW_CONTAINERS: "1",
};

/** Enough to distinguish two values, too little to recover one. */
export const HASH_CHARS = 12;

/** What the record of a worker keeps of a setting. */
export const hashOf = (name: string, value: string): string =>
  createHash("sha256").update(`${name}=${value}`).digest("hex").slice(0, HASH_CHARS);

/** No worker was started, because one started from this shell would lack a setting. */
export class SettingMissing extends ServiceMissing {}

/** Names of the protections that the recorded worker has, and one with this environment would not have. */
export function lostProtections(worker: RunningService | undefined, environment: Environment): string[] {
  const had = worker?.settings ?? {};
  return Object.entries(PROTECTIONS)
    .filter(([name, off]) => {
      const recorded = had[name];
      if (recorded === undefined || (off !== undefined && recorded === hashOf(name, off))) return false;
      const value = environment[name] || undefined;
      return value === undefined || value === off;
    })
    .map(([name]) => name);
}

/** For a worker that was not ended on purpose: `down` removes the record. */
export function protectionMissing(names: readonly string[]): SettingMissing {
  const list = inWords(names);
  return new SettingMissing({
    service: "A worker started from this shell",
    address: "",
    problem: `would lack the protection of ${list}, which the local worker has for everyone who uses it; none was started`,
    fix: `Set ${list} in this shell as for that worker, and repeat the command. To go on without, end that worker on purpose: longhaul down`,
  });
}
