/** Saves and restores a workspace from inside its box, as uid 1000, with sh, find, tar, xargs, rm and chmod alone. */
import { fatal, retryable } from "../failures.ts";
import { runWorkspaceProgram, type ProgramBox } from "./workspace-program.ts";
import { bytesOfText } from "./path-text.ts";
import {
  compareManifests,
  MAX_PACK_BYTES,
  packManifest,
  unpackManifest,
  withinBytes,
  type ManifestEntry,
  type Skipped,
} from "./workspace-manifest.ts";
import { packedPaths, packEntries, readChain, tarOf, type StoredPack } from "./workspace-pack.ts";
import { surveyWorkspace } from "./workspace-survey.ts";

/** What a workspace is compared with: `depth` is how many checkpoints must be read to restore it, itself included. */
export interface WorkspaceBase {
  readonly manifest: Uint8Array;
  readonly depth: number;
}

export interface SavedWorkspace extends StoredPack {
  /** Paths that are new or different since the base, and how many are gone. */
  readonly changed: number;
  readonly removed: number;
  /** True where the pack holds everything, so that the checkpoint needs no parent. */
  readonly whole: boolean;
}

export interface WorkspaceSave {
  /** Undefined where nothing differs from the latest checkpoint. */
  readonly saved: SavedWorkspace | undefined;
  /** What is in no save, and why; folders of `REBUILT_FOLDERS` are not listed. */
  readonly skipped: readonly Skipped[];
}

/** So many checkpoints make the longest chain; then a whole one. Source: the requirements. */
export const MAX_CHAIN = 20;

/** Files per restored piece: bounds what one command takes on its standard input. */
const PIECE_BYTES = 16 * 1024 * 1024;
/** So often a save begins anew because files went away under it. */
const MAX_SAVES = 3;

// GNU's format takes names of any bytes; times are the manifest's. A file that vanishes or may not be read is left out, rather than that nothing is saved.
const TAR = [
  "tar",
  "-cf",
  "-",
  "--use-compress-program=gzip -3",
  "--format=gnu",
  "--hard-dereference",
  "--ignore-failed-read",
  "--no-recursion",
  "--verbatim-files-from",
  "--null",
  "-T",
  "-",
];

/**
 * What changed in the workspace since `latest`, packed.
 * The pack holds the difference to `base`, which is `latest` where nothing is said: a step that is saved a second time
 * gives the checkpoint before it, so that its row can be replaced, and where there is none before it, undefined: then the
 * pack holds everything.
 * @throws SandboxUnavailable (retryable) when the box does not do it; SandboxLost when it is gone.
 */
export async function saveWorkspace(
  box: ProgramBox,
  latest: WorkspaceBase | undefined,
  { base }: { readonly base: WorkspaceBase | undefined } = { base: latest },
): Promise<WorkspaceSave> {
  for (let saves = 1; ; saves += 1) {
    const { save, vanished } = await saveOnce(box, latest, base);
    // A file that was renamed between the list and the pack would be in neither under its new name.
    if (vanished === 0 || saves === MAX_SAVES) return save;
  }
}

async function saveOnce(
  box: ProgramBox,
  latest: WorkspaceBase | undefined,
  base: WorkspaceBase | undefined,
): Promise<{ readonly save: WorkspaceSave; readonly vanished: number }> {
  const survey = await surveyWorkspace(box);
  const within = withinBytes(survey.entries, MAX_PACK_BYTES);
  const entries = within.kept;
  const skipped = [...survey.skipped, ...within.skipped];
  const before = latest === undefined ? [] : unpackManifest(latest.manifest);
  const sinceLatest = compareManifests(before, entries);
  const unchanged = { save: { saved: undefined, skipped }, vanished: 0 };
  if (sinceLatest.changed.length + sinceLatest.removed.length === 0) return unchanged;

  const whole = base === undefined || base.depth >= MAX_CHAIN;
  const since =
    base === latest ? sinceLatest : compareManifests(base ? unpackManifest(base.manifest) : [], entries);
  const packed = whole ? entries : since.changed;
  const pack = survey.content
    ? await packEntries(packed, (path) => survey.content?.get(path))
    : (await runWorkspaceProgram(box, TAR, { stdin: pathList(packed), highestExitCode: 1 })).output;
  // A manifest must not name what is not there: what vanished since, or may not be read, is tried again next time.
  const inPack = await packedPaths(pack);
  const missing = packed.filter((entry) => !inPack.has(entry.path));
  const unreadable = missing.filter((entry) => (entry.mode & 0o400) === 0);
  for (const { path, size } of unreadable) skipped.push({ path, bytes: size, reason: "not-readable" });
  const vanished = missing.length - unreadable.length;
  const missed = new Set(missing.map((entry) => entry.path));
  // A file that can never be read must not make every step look like a change.
  if (sinceLatest.removed.length === 0 && sinceLatest.changed.every((entry) => missed.has(entry.path))) {
    return { ...unchanged, vanished };
  }
  const saved = {
    // The list was made before the tar: what changes in between is seen as changed the next time.
    manifest: packManifest(entries.filter((entry) => !missed.has(entry.path))),
    pack,
    changed: since.changed.length,
    removed: since.removed.length,
    whole,
  };
  return { save: { saved, skipped }, vanished };
}

/**
 * Makes the workspace what it was after the last checkpoint of `chain` (oldest first): removes what was not there, writes
 * what differs, leaves the rest, rebuilt folders too. Doing it twice does nothing the second time.
 * @returns the last checkpoint's manifest with the times that its files have now, so that they do not count as changed
 * @throws WorkspaceLost (fatal) when the checkpoints cannot be read; SandboxUnavailable (retryable), also where a path is
 * not there afterwards; SandboxLost.
 */
export async function restoreWorkspace(box: ProgramBox, chain: readonly StoredPack[]): Promise<Uint8Array> {
  const target = await readChain(chain).catch((error: unknown) => {
    throw fatal(
      "WorkspaceLost",
      `The saved workspace cannot be read back: ${error instanceof Error ? error.message : "unknown error"}` +
        " Nothing was changed in the sandbox; its checkpoints are kept in Postgres.",
      error,
    );
  });
  const current = (await surveyWorkspace(box)).entries;
  const { changed, removed } = compareManifests(withoutCtime(current), target.entries);
  if (changed.length + removed.length === 0) return retimed(target.entries, current);
  const kinds = new Map(target.entries.map((entry) => [entry.path, entry.kind]));
  // Another kind of thing at the same path would make tar fail, or worse, write through a link.
  const inTheWay = current.filter((entry) => {
    const kind = kinds.get(entry.path);
    return kind !== undefined && kind !== entry.kind;
  });
  const locked = current.filter((entry) => entry.kind === "folder" && (entry.mode & 0o200) === 0);
  await withPaths(box, ["chmod", "u+rwx", "--"], locked);
  await withPaths(box, ["rm", "-rf", "--"], [...removed, ...inTheWay]);

  const lockedPaths = new Set(locked.map((entry) => entry.path));
  const again = target.entries.filter((entry) => lockedPaths.has(entry.path));
  const wanted = [...new Set([...changed, ...again])];
  // Folders last: a folder without write permission is closed only when its files are in.
  for (const piece of pieces(
    wanted.toSorted((a, b) => Number(a.kind === "folder") - Number(b.kind === "folder")),
  )) {
    await runWorkspaceProgram(box, ["tar", "-xpf", "-"], {
      stdin: tarOf(piece, (path) => target.bytes.get(path)),
    });
  }
  return retimed(target.entries, await withModes(box, target.entries));
}

/** Not every tar gives modes to folders that are there, or special bits: what differs is set. */
async function withModes(box: ProgramBox, target: readonly ManifestEntry[]): Promise<ManifestEntry[]> {
  const now = (await surveyWorkspace(box)).entries;
  const modes = new Map(now.map((entry) => [entry.path, entry.mode]));
  const differing = target.filter(({ kind, path, mode }) => kind !== "link" && modes.get(path) !== mode);
  const there = differing.filter(({ path }) => modes.has(path));
  if (there.length === 0) return now;
  // Innermost first: a folder that is closed hides what is in it.
  for (const mode of new Set(there.map((entry) => entry.mode)))
    await withPaths(
      box,
      ["chmod", mode.toString(8), "--"],
      there.filter((entry) => entry.mode === mode).toReversed(),
    );
  return (await surveyWorkspace(box)).entries;
}

const withoutCtime = (entries: readonly ManifestEntry[]): ManifestEntry[] =>
  entries.map((entry) => ({ ...entry, ctime: "" }));

/** @throws SandboxUnavailable (retryable) where one of `target` is not there */
function retimed(target: readonly ManifestEntry[], now: readonly ManifestEntry[]): Uint8Array {
  const found = new Map(now.map((entry) => [entry.path, entry]));
  const missing = target.filter((entry) => found.get(entry.path)?.kind !== entry.kind);
  if (missing.length > 0) {
    throw retryable(
      "SandboxUnavailable",
      `The workspace was not restored whole: ${missing.length} of ${target.length} paths are missing, such as ${JSON.stringify(missing[0]?.path.toWellFormed())}. The checkpoints are kept; it is tried again.`,
    );
  }
  return packManifest(
    target.map((entry) => {
      const { mtime, ctime } = found.get(entry.path) ?? entry;
      return { ...entry, mtime, ctime };
    }),
  );
}

async function withPaths(
  box: ProgramBox,
  argv: readonly string[],
  entries: readonly ManifestEntry[],
): Promise<void> {
  if (entries.length > 0)
    await runWorkspaceProgram(box, ["xargs", "-0", ...argv], { stdin: pathList(entries) });
}

// With `./` in front no name can be taken for an option.
function pathList(entries: readonly ManifestEntry[]): Uint8Array {
  return Buffer.concat(entries.map((entry) => bytesOfText(`./${entry.path}\0`)));
}

function* pieces(entries: readonly ManifestEntry[]): Generator<ManifestEntry[]> {
  let piece: ManifestEntry[] = [];
  let bytes = 0;
  for (const entry of entries) {
    if (piece.length > 0 && bytes + entry.size > PIECE_BYTES) {
      yield piece;
      piece = [];
      bytes = 0;
    }
    piece.push(entry);
    bytes += entry.size;
  }
  if (piece.length > 0) yield piece;
}
