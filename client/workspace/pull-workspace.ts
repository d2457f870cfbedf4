/** Writes a session's last saved files to disk, with notes on omissions, or compares them with the initial files. */
import { join } from "node:path";
import { ApplicationFailure } from "@temporalio/common";
import { readLargeBase, readMissing, readWorkspace } from "../../activities/store/checkpoints.ts";
import { reasonOf } from "../../activities/contract/errors.ts";
import type { Database, Store } from "../../activities/store/db.ts";
import type { WorkspaceFile } from "../../activities/store/workspace-pack.ts";
import type { SessionRow } from "../../activities/store/reading.ts";
import { notPossible, type ClientError } from "../console/errors.ts";
import { listNames, present, shellWord } from "../console/format.ts";
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
): Promise<PulledWorkspace | undefined> {
  const files = await savedFiles(store.db, sessionId);
  if (files === undefined) return undefined;
  const base = await readLargeBase(store.db, sessionId);
  // Without the base's objects a repository would be a broken one.
  const own = base === undefined ? files : files.filter(({ path }) => !path.split("/").includes(".git"));
  const written = await writeWorkspace(own, folder, options);
  const elsewhere =
    base &&
    `Only what the session changed: all else is commit ${base.commit.slice(0, 12)} of ${base.url}, as is its history.`;
  return { ...written, lacking: present(elsewhere, ...(await missingNotes(store.db, sessionId))) };
}

/** @throws ClientError (impossible) if a save is missing in Postgres */
async function savedFiles(...args: Parameters<typeof readWorkspace>) {
  return readWorkspace(...args).catch((error: unknown) => {
    throw error instanceof ApplicationFailure ? notPossible(reasonOf(error)) : error;
  });
}

export interface PulledWorkspace extends Written {
  /** What the saved files do not have, as notes for the person. */
  readonly lacking: readonly string[];
}

/** Notes on a pull for the person, one per line. `again` is the command that writes repositories unchanged. */
export function pullNotes(pulled: PulledWorkspace, folder: string, again: string): string[] {
  const { skipped, unsafe, untouched, lacking } = pulled;
  return present(
    ...lacking,
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
        `They are saved as it works: longhaul watch ${shellWord(id)}`,
      )
    : notPossible(
        `${id} ended (${status}) before any of its files was saved.`,
        `See why: longhaul status ${shellWord(id)}`,
      );
}

/**
 * @param isRead whether a build's runner reads the patch
 * @throws ClientError (impossible) if nothing was ever saved
 */
export async function sessionDiff(store: Store, session: Session, isRead = false) {
  const states = await sessionStates(store.db, session.id);
  if (states === undefined) throw noFiles(session);
  const { before, after } = states;
  const diff = diffWorkspaces(before, after, { binaries: "bytes", isRead });
  const notes = present(
    ...(await missingNotes(store.db, session.id)),
    diff.ignored.length > 0 && `New, but left out because Git ignores them: ${listNames(diff.ignored)}.`,
    diff.inert !== undefined &&
      `In Git's binary form, which git apply takes, because this build's runner would obey what is in the text: ${listNames(diff.inert)}. As text: longhaul diff ${shellWord(session.id)} --json`,
  );
  return { ...diff, notes, isFiltered: isFiltered(after) };
}

/** Whether Git may store other bytes than the files have: by their attributes, or by the repository's settings. */
function isFiltered(files: readonly WorkspaceFile[]): boolean {
  return files.some((file) => {
    if (
      file.kind !== "file" ||
      !/(^|\/)(\.gitattributes|\.git\/config|\.git\/info\/attributes)$/.test(file.path)
    )
      return false;
    const text = Buffer.from(file.bytes).toString();
    return file.path.endsWith("/config")
      ? /^\s*autocrlf\s*=\s*"?true/im.test(text)
      : /\s(eol=crlf|ident|filter=\S|working-tree-encoding=\S)/.test(text);
  });
}

/**
 * A session's first and last files. What the last save could not hold counts as unchanged, never as removed.
 * @returns undefined if nothing was ever saved
 */
export async function sessionStates(db: Database, id: string) {
  const after = await savedFiles(db, id);
  if (after === undefined) return undefined;
  const before = (await savedFiles(db, id, { atStep: 0 })) ?? [];
  const missing = await readMissing(db, id);
  const savedPaths = new Set(after.map(({ path }) => path));
  const unknown = before.filter(({ path }) => !savedPaths.has(path) && missing?.reasonOf(path) !== undefined);
  return { before, after: [...after, ...unknown] };
}

const PARTS: Readonly<Record<string, string>> = {
  repository: "a repository's history, which is saved whole or not at all and did not fit",
  "repository-as-before":
    "a repository's history is an earlier one, because it was too large or not readable since",
  "not-asked": "files that Git could not be asked about",
};

/** Notes on what the newest save does not have in its last state, one per reason. */
async function missingNotes(db: Database, id: string): Promise<string[]> {
  const reasons = (await readMissing(db, id))?.reasons ?? new Map<string, string>();
  return [...Map.groupBy(reasons, ([, reason]) => reason)].map(([reason, paths]) => {
    const why = PARTS[reason] ?? `${reason.replaceAll("-", " ")} for a save`;
    return `Not in the saved files as the session left them: ${listNames(paths.map(([path]) => path))} (${why}).`;
  });
}
