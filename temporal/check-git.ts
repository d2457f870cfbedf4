/** Looks, at the worker's start, at what git needs of this machine: sessions on repositories would find out one by one. */
import { mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { reasonOf } from "../activities/contract/errors.ts";
import type { GitAccess } from "../activities/git/git-access.ts";
import { ServiceMissing, surroundingsMissing } from "./service-missing.ts";

/** @throws ServiceMissing if the folder for repositories cannot be written to, or a file of certificate authorities cannot be read */
export async function checkGit({ folder, trust }: Pick<GitAccess, "folder" | "trust">): Promise<void> {
  const probe = join(folder, `probe-${process.pid}`);
  try {
    await mkdir(folder, { recursive: true, mode: 0o700 });
    await writeFile(probe, "");
    await rm(probe);
  } catch (cause) {
    throw new ServiceMissing({
      service: "The folder for repositories",
      address: folder,
      problem: `cannot be written to: ${folder}`,
      reason: reasonOf(cause),
      fix: "Set LONGHAUL_GIT_FOLDER to a folder that the worker may write to; without it, the folder is below XDG_DATA_HOME or HOME.",
      cause,
    });
  }
  try {
    trust();
  } catch (cause) {
    throw surroundingsMissing(cause);
  }
}
