/** Saves and restores a workspace from inside its box, as uid 1000, with find, tar, xargs, rm and chmod alone. */
import { randomUUID } from "node:crypto";
import { fatal, retryable } from "../failures.ts";
import type { Sandbox } from "./sandbox.ts";
import {
  compareManifests,
  FIND_FORMAT,
  MAX_PACK_BYTES,
  packManifest,
  parseListing,
  REBUILT_FOLDERS,
  unpackManifest,
  withinBytes,
  type ManifestEntry,
  type Skipped,
} from "./workspace-manifest.ts";
import { packedPaths, packEntries, readChain, type StoredPack } from "./workspace-pack.ts";

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

/** Longest a listing or a pack may take in ms: a full pack of incompressible 250 MiB took 10 s on 2 cores (2026-11). */
const COMMAND_TIMEOUT_MS = 120_000;
/** Files per restored piece: bounds what one command takes on its standard input. */
const PIECE_BYTES = 16 * 1024 * 1024;
const READ_BYTES = 1024 * 1024;

const PRINT_FILES = ["-type", "f,d,l", "-printf", FIND_FORMAT];
// posix keeps nanoseconds; without the deletes each file would take a block more for times nobody restores.
// A file that vanishes or may not be read is left out, rather than that nothing is saved.
const TAR = [
  "tar",
  "-cf",
  "-",
  "--use-compress-program=gzip -3",
  "--format=posix",
  "--pax-option=delete=atime,delete=ctime",
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
 * The pack holds the difference to `base` (default `latest`): a step that is saved a second time gives the checkpoint
 * before it, so that its row can be replaced.
 * @throws SandboxUnavailable (retryable) when the box does not do it; SandboxLost when it is gone.
 */
export async function saveWorkspace(
  box: Sandbox,
  latest: WorkspaceBase | undefined,
  base: WorkspaceBase | undefined = latest,
): Promise<WorkspaceSave> {
  const listing = await listWorkspace(box);
  const within = withinBytes(listing.entries, MAX_PACK_BYTES);
  const entries = within.kept;
  const skipped = [...listing.skipped, ...within.skipped];
  const before = latest === undefined ? [] : unpackManifest(latest.manifest);
  const sinceLatest = compareManifests(before, entries);
  if (sinceLatest.changed.length + sinceLatest.removed.length === 0) return { saved: undefined, skipped };

  const whole = base === undefined || base.depth >= MAX_CHAIN;
  const since =
    base === latest ? sinceLatest : compareManifests(base ? unpackManifest(base.manifest) : [], entries);
  const packed = whole ? entries : since.changed;
  const pack = await run(box, TAR, pathList(packed), 1);
  // A manifest must not name what is not there: what vanished since, or may not be read, is tried again next time.
  const inPack = await packedPaths(pack);
  const missing = new Set(packed.filter((entry) => !inPack.has(entry.path)).map((entry) => entry.path));
  for (const entry of packed) {
    // What vanished since the list was made is not left out.
    if (missing.has(entry.path) && (entry.mode & 0o400) === 0)
      skipped.push({ path: entry.path, bytes: entry.size, reason: "not-readable" });
  }
  // A file that can never be read must not make every step look like a change.
  if (sinceLatest.removed.length === 0 && sinceLatest.changed.every((entry) => missing.has(entry.path))) {
    return { saved: undefined, skipped };
  }
  const saved = {
    // The list was made before the tar: what changes in between is seen as changed the next time.
    manifest: packManifest(entries.filter((entry) => !missing.has(entry.path))),
    pack,
    changed: since.changed.length,
    removed: since.removed.length,
    whole,
  };
  return { saved, skipped };
}

/**
 * Makes the workspace what it was after the last checkpoint of `chain` (oldest first): removes what was not there, writes
 * what differs, leaves the rest, rebuilt folders too. Doing it twice does nothing the second time.
 * @throws WorkspaceLost (fatal) when the checkpoints cannot be read; SandboxUnavailable (retryable); SandboxLost.
 */
export async function restoreWorkspace(box: Sandbox, chain: readonly StoredPack[]): Promise<void> {
  const target = await readChain(chain).catch((error: unknown) => {
    throw fatal(
      "WorkspaceLost",
      `The saved workspace cannot be read back: ${error instanceof Error ? error.message : "unknown error"}` +
        " Nothing was changed in the sandbox; its checkpoints are kept in Postgres.",
      error,
    );
  });
  const current = (await listWorkspace(box)).entries;
  const { changed, removed } = compareManifests(current, target.entries);
  const kinds = new Map(target.entries.map((entry) => [entry.path, entry.kind]));
  // Another kind of thing at the same path would make tar fail, or worse, write through a link.
  const inTheWay = current.filter((entry) => {
    const kind = kinds.get(entry.path);
    return kind !== undefined && kind !== entry.kind;
  });
  const locked = current.filter((entry) => entry.kind === "folder" && (entry.mode & 0o200) === 0);
  if (changed.length + removed.length === 0) return;
  await withPaths(box, ["chmod", "u+rwx", "--"], locked);
  await withPaths(box, ["rm", "-rf", "--"], [...removed, ...inTheWay]);

  const lockedPaths = new Set(locked.map((entry) => entry.path));
  const again = target.entries.filter((entry) => lockedPaths.has(entry.path));
  const wanted = [...new Set([...changed, ...again])];
  // Folders last: a folder without write permission is closed only when its files are in.
  for (const piece of pieces(
    wanted.toSorted((a, b) => Number(a.kind === "folder") - Number(b.kind === "folder")),
  )) {
    const pack = await packEntries(piece, (path) => target.bytes.get(path));
    await run(box, ["tar", "-xzpf", "-", "--no-same-owner"], pack);
  }
}

async function listWorkspace(box: Sandbox): Promise<{ entries: ManifestEntry[]; skipped: Skipped[] }> {
  const names = REBUILT_FOLDERS.flatMap((name, at) => [...(at === 0 ? [] : ["-o"]), "-name", name]);
  const rebuilt = ["-type", "d", "(", ...names, ")", "-prune"];
  const bytes = await run(
    box,
    ["find", ".", "-mindepth", "1", ...rebuilt, "-o", ...PRINT_FILES],
    undefined,
    1,
  );
  return parseListing(bytes);
}

async function withPaths(
  box: Sandbox,
  argv: readonly string[],
  entries: readonly ManifestEntry[],
): Promise<void> {
  if (entries.length > 0) await run(box, ["xargs", "-0", ...argv], pathList(entries));
}

// With `./` in front no name can be taken for an option.
function pathList(entries: readonly ManifestEntry[]): Uint8Array {
  return Buffer.from(entries.map((entry) => `./${entry.path}\0`).join(""));
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

/**
 * @param highestExitCode find and tar end with 1 when a file vanished or changed under them, as running processes do
 * @returns all of the command's standard output
 */
async function run(
  box: Sandbox,
  argv: readonly string[],
  stdin?: Uint8Array,
  highestExitCode = 0,
): Promise<Uint8Array> {
  // Never the same id twice: a second attempt must look at the files as they are now.
  const id = `ws-${randomUUID()}`;
  const state = await box.run(
    {
      id,
      argv,
      ...(stdin === undefined ? {} : { stdin }),
      env: { LC_ALL: "C.UTF-8" },
      timeoutMs: COMMAND_TIMEOUT_MS,
      maxOutputBytes: 2 * MAX_PACK_BYTES,
    },
    { timeoutMs: COMMAND_TIMEOUT_MS + 10_000 },
  );
  const ok = state.kind === "exited" && state.exitCode <= highestExitCode && state.outKept === state.outBytes;
  if (!ok) {
    const detail = state.errKept > 0 ? decode(await box.read(id, "err", 0, 500)) : "";
    const how = state.kind === "exited" ? `exit code ${state.exitCode}` : state.kind;
    throw retryable(
      "SandboxUnavailable",
      `The workspace could not be saved or restored: ${argv[0]} in the sandbox ended with ${how}. ${detail}` +
        " Earlier checkpoints are kept. It is tried again.",
    );
  }
  const bytes: Uint8Array[] = [];
  for (let offset = 0; offset < state.outKept;) {
    const piece = await box.read(id, "out", offset, READ_BYTES);
    if (piece.byteLength === 0) break;
    bytes.push(piece);
    offset += piece.byteLength;
  }
  return Buffer.concat(bytes);
}

function decode(bytes: Uint8Array): string {
  return new TextDecoder().decode(bytes).trim();
}
