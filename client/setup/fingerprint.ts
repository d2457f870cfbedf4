/** What a running worker was started from, so that a changed source, key or address starts a new one. */
import { createHash } from "node:crypto";
import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { WORKER_SETTINGS } from "./environment.ts";
import { projectFolder } from "./services.ts";

const SOURCES = ["activities", "workflows", "worker", "package-lock.json"];

/** A hash; secrets go into it and cannot be read from it. */
export function workerFingerprint(environment: Readonly<Record<string, string | undefined>>): string {
  const hash = createHash("sha256").update(process.version);
  for (const source of SOURCES) addFile(hash, join(projectFolder, source));
  for (const name of Object.keys(environment)
    .filter((key) => WORKER_SETTINGS.test(key))
    .sort()) {
    hash.update(`${name}=${environment[name] ?? ""}\0`);
  }
  return hash.digest("hex").slice(0, 24);
}

function addFile(hash: ReturnType<typeof createHash>, path: string): void {
  const found = statSync(path);
  if (found.isDirectory()) {
    for (const name of readdirSync(path).sort()) addFile(hash, join(path, name));
  } else {
    hash.update(`${path} ${found.size} ${found.mtimeMs}\0`);
  }
}
