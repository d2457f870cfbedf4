/**
 * Where things are kept, for `doctor`: bases and stopped sandboxes on the workers' hosts, large saves in an object store, and copies of
 * repositories in a folder.
 */
import { existsSync } from "node:fs";
import { createGitAccess } from "../../activities/git/git-access.ts";
import { checkGit } from "../../temporal/probe.ts";
import type { HostDiskUse } from "../../activities/store/host-disk.ts";
import { bytes as sizeText, plural } from "../../activities/text/format.ts";
import { harmlessLine } from "../console/format.ts";
import type { Finding } from "./sandbox-check.ts";
import { type LocalServices, settingOf } from "./services.ts";
import { type Check, probed } from "./findings.ts";
import { checkObjectStore, chosenObjectStore } from "../../temporal/object-store-probe.ts";

/** Source: doctor ends within about 10 s. */
const ASK_MS = 2_000;

/** As the workers counted last. */
export async function hostDiskCheck({ databaseUrl }: LocalServices): Promise<Check[]> {
  const { openStore } = await import("../../activities/store/db.ts");
  const { readHostDisks } = await import("../../activities/store/host-disk.ts");
  try {
    const store = openStore({
      url: databaseUrl,
      maxConnections: 1,
      connectTimeoutMs: ASK_MS,
      silenceMs: ASK_MS,
    });
    try {
      const finding = hostDiskFinding(await readHostDisks(store.db));
      return finding === undefined ? [] : [{ name: "host disk", ...finding }];
    } finally {
      await store.close();
    }
  } catch {
    // What is missing is a finding of its own.
    return [];
  }
}

/** What bases and stopped sandboxes take on each host, and may take. @returns undefined if no worker has told */
export function hostDiskFinding(uses: readonly HostDiskUse[]): Finding | undefined {
  if (uses.length === 0) return undefined;
  const lines = uses.map(
    ({ host, usedBytes, limitBytes, bases, parked }) =>
      `${harmlessLine(host, 60)}: ${sizeText(usedBytes)} of ${sizeText(limitBytes)} (${plural(bases, "base")}, ${plural(parked, "stopped sandbox", "stopped sandboxes")})`,
  );
  const report = lines.join("; ");
  const over = uses.filter(({ usedBytes, limitBytes }) => usedBytes > limitBytes);
  if (over.length === 0) return { ok: true, found: report };
  const unsaved = over.reduce((sum, use) => sum + use.unsaved, 0);
  const why =
    unsaved > 0
      ? ` ${plural(unsaved, "stopped sandbox stays", "stopped sandboxes stay")} for files that no save has.`
      : "";
  return {
    ok: true,
    warning: true,
    found: report,
    fix: `What is in use stays.${why} Give sessions less time (sandbox.park.keep), or raise LONGHAUL_HOST_DISK.`,
  };
}

/** Writes, reads and removes a small object, if a store is chosen. */
export async function objectStoreCheck(): Promise<Check[]> {
  const address = settingOf("LONGHAUL_STORE");
  if (address === undefined) return [];
  const finding = await probed(undefined, async () => {
    const objects = chosenObjectStore(address);
    await checkObjectStore(objects);
    return objects?.address ?? "";
  });
  return [{ name: "object store", ...finding }];
}

/** As a worker on this machine would use it. @throws ServiceMissing */
export async function gitFolder(): Promise<string> {
  const access = createGitAccess(process.env);
  const isNew = !existsSync(access.folder);
  await checkGit(access);
  return `${access.folder}${isNew ? ", made now" : ""}, can be written to`;
}
