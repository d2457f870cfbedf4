/** Writes a session's last saved files to disk, with notes on omissions, or compares them with the initial files. */
import { join } from "node:path";
import { readWorkspace } from "../../activities/store/checkpoints.ts";
import type { Store } from "../../activities/store/db.ts";
import type { SessionRow } from "../../activities/store/reading.ts";
import { notPossible, type ClientError } from "../console/errors.ts";
import { listNames, present } from "../console/format.ts";
import { diffWorkspaces } from "./workspace-diff.ts";
import { writeWorkspace, type WriteOptions, type Written } from "./write-workspace.ts";

/**
 * Writes the session's files into a folder, which is created if it is missing.
 * @returns undefined if nothing was ever saved
 * @throws ClientError (impossible), as `writeWorkspace`
 */
export async function pullWorkspace(
  store: Store,
  sessionId: string,
  folder: string,
  options: WriteOptions = {},
): Promise<Written | undefined> {
  const files = await readWorkspace(store.db, sessionId);
  return files === undefined ? undefined : writeWorkspace(files, folder, options);
}

/** Notes on a pull for the person, one per line. `again` is the command that writes repositories unchanged. */
export function pullNotes(written: Written, folder: string, again: string): string[] {
  const { skipped, unsafe, untouched } = written;
  return present(
    skipped.length > 0 &&
      `Left out ${listNames(skipped)}: links that lead out of the folder, or names that cannot be written here.`,
    unsafe.length > 0 &&
      `Left out ${listNames(unsafe)}: they could make Git run programs here. To write them anyway: ${again}`,
    untouched.length > 0 &&
      `Not written to ${listNames(untouched.map((path) => join(folder, path)))}: a repository that was there stays as it is.` +
        " An empty folder gets the session's commits.",
  );
}

type Session = Pick<SessionRow, "id" | "status" | "endedAt">;

/** Nothing was ever saved: of a session that is over, nothing is to be waited for. */
export function noFiles({ id, status, endedAt }: Session): ClientError {
  return endedAt === null
    ? notPossible(
        `No files of ${id} have been saved yet.`,
        `They are saved as it works: longhaul watch ${id}`,
      )
    : notPossible(
        `${id} ended (${status}) before any of its files was saved.`,
        `See why: longhaul status ${id}`,
      );
}

/** @throws ClientError (impossible) if nothing was ever saved */
export async function sessionDiff(store: Store, session: Session) {
  const { id } = session;
  const after = await readWorkspace(store.db, id);
  if (after === undefined) throw noFiles(session);
  const before = (await readWorkspace(store.db, id, { atStep: 0 })) ?? [];
  return diffWorkspaces(before, after, { binaries: "bytes" });
}
