/** Records what a running worker was started from: if a source, key or address changes, a new worker is started. */
import { createHash } from "node:crypto";
import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { imageNamed } from "../../activities/config/default-image.ts";
import { inWords } from "../console/format.ts";
import { WORKER_SETTINGS } from "./environment.ts";
import { HASH_CHARS, hashOf } from "./protections.ts";
import { projectFolder } from "./services.ts";
import type { Environment } from "../config/environment.ts";

const SOURCES = ["activities", "workflows", "worker", "package-lock.json"];

export interface WorkerOrigin {
  readonly code: string;
  /** A hash of each setting. Secrets are included; they cannot be recovered from the hash. */
  readonly settings: Readonly<Record<string, string>>;
}

export function workerOrigin(environment: Environment): WorkerOrigin {
  const code = createHash("sha256").update(process.version);
  for (const source of SOURCES) addFile(code, join(projectFolder, source));
  // Set-up passes the default image to the worker by name, which equals a shell without SANDBOX_IMAGE.
  const settled: Environment = {
    ...environment,
    SANDBOX_IMAGE: imageNamed(environment["SANDBOX_IMAGE"] || undefined),
  };
  const settings = Object.keys(settled)
    // An empty variable counts as unset, as everywhere.
    .filter((name) => WORKER_SETTINGS.test(name) && settled[name])
    .sort()
    .map((name) => [name, hashOf(name, settled[name] ?? "")] as const);
  return { code: code.digest("hex").slice(0, HASH_CHARS), settings: Object.fromEntries(settings) };
}

export interface OriginDifference {
  readonly code: boolean;
  readonly changed: readonly string[];
  /** Settings that the worker has and this environment lacks. */
  readonly lacking: readonly string[];
}

/** The differences between a worker's record and one that would be started now. */
export function differenceOf(running: Partial<WorkerOrigin>, now: WorkerOrigin): OriginDifference {
  const had = running.settings ?? {};
  return {
    code: running.code !== now.code,
    changed: Object.keys(now.settings).filter((name) => had[name] !== now.settings[name]),
    lacking: Object.keys(had).filter((name) => !(name in now.settings)),
  };
}

export function isDifferent({ code, changed, lacking }: OriginDifference): boolean {
  return code || changed.length > 0 || lacking.length > 0;
}

/** Such as `the code and OPENAI_API_KEY`. */
export function describeDifference({ code, changed, lacking }: OriginDifference): string {
  return inWords([...(code ? ["the code"] : []), ...changed, ...lacking]);
}

function addFile(hash: ReturnType<typeof createHash>, path: string): void {
  const found = statSync(path);
  if (found.isDirectory()) {
    for (const name of readdirSync(path).sort()) addFile(hash, join(path, name));
  } else {
    hash.update(`${path} ${found.size} ${found.mtimeMs}\0`);
  }
}
