/**
 * What a delegate changed in its files, with their content: from its first save to its last; which
 * of it comes back, file by file; and how that is applied to the parent's sandbox.
 */
import { createHash, randomUUID } from "node:crypto";
import { checkpointChain, latestCheckpoint } from "../store/checkpoints.ts";
import type { Database } from "../store/db.ts";
import { unpackManifest, unpackMissing, type ManifestEntry } from "../store/workspace-manifest.ts";
import { readFiles } from "../store/workspace-pack.ts";
import { type CommandSandbox, lastLine, readEnd, runOwn } from "../sandbox/own-command.ts";
import type { Sandbox, SandboxFiles } from "../sandbox/sandbox.ts";

export interface ChangedFile {
  readonly path: string;
  readonly base: FileVersion;
  readonly child: FileVersion;
  /** As the delegate got it; undefined if it made it. */
  readonly baseBytes: Uint8Array | undefined;
  /** As the delegate left it; undefined if it removed it. */
  readonly bytes: Uint8Array | undefined;
}

export interface Changes {
  readonly files: readonly ChangedFile[];
  readonly left: readonly { readonly path: string; readonly reason: string }[];
}

/** @param base the save that it began with; undefined if it began with no files */
export async function changedFiles(
  db: Database,
  childId: string,
  base: number | undefined,
): Promise<Changes> {
  return db.transaction(
    async (tx) => {
      const latest = await latestCheckpoint(tx, childId);
      if (latest === undefined || latest.id === base) return { files: [], left: [] };
      const read = async (
        id: number | undefined,
        entries: readonly ManifestEntry[],
        paths: readonly string[],
      ) => {
        const has = new Set(entries.flatMap(({ kind, path }) => (kind === "file" ? [path] : [])));
        const wantedPaths = new Set(paths.filter((path) => has.has(path)));
        if (id === undefined || wantedPaths.size === 0) return new Map<string, Uint8Array>();
        return readFiles((await checkpointChain(tx, id)).packs, wantedPaths);
      };
      const before = base === undefined ? [] : unpackManifest((await checkpointChain(tx, base)).manifest);
      const { manifest } = await checkpointChain(tx, latest.id);
      const after = unpackManifest(manifest);
      const { files: differing, left } = changedPaths(before, after);
      // What the last save could not hold was not removed.
      const missing = unpackMissing(manifest);
      const heldPaths = new Set(after.map(({ path }) => path));
      const files = differing.filter((path) => heldPaths.has(path) || missing.reasonOf(path) === undefined);
      const [old, now] = [await read(base, before, files), await read(latest.id, after, files)];
      const changed = files.map((path): ChangedFile => {
        const [baseBytes, bytes] = [old.get(path), now.get(path)];
        return {
          path,
          base: stateOf(before, path, baseBytes),
          child: stateOf(after, path, bytes),
          baseBytes,
          bytes,
        };
      });
      return { files: changed.filter(differs), left };
    },
    { isolationLevel: "repeatable read" },
  );
}

function stateOf(
  entries: readonly ManifestEntry[],
  path: string,
  bytes: Uint8Array | undefined,
): FileVersion {
  const entry = entries.find((other) => other.path === path);
  if (entry === undefined || bytes === undefined) return undefined;
  return { hash: createHash("sha256").update(bytes).digest("hex"), mode: entry.mode };
}

const differs = ({ base, child }: ChangedFile): boolean =>
  base?.hash !== child?.hash || base?.mode !== child?.mode;

/** A file at one moment, by its content and permission bits; undefined if there was none. */
export type FileVersion = { readonly hash: string; readonly mode: number } | undefined;

export type MergeVerdict =
  /** The parent has the same file already, perhaps by an attempt whose answer was lost. */
  { readonly kind: "same" } | { readonly kind: "take" } | { readonly kind: "leave"; readonly reason: string };

/** @param base as the delegate got it @param child as the delegate left it @param parent as the parent has it now */
export function mergeFile(base: FileVersion, child: FileVersion, parent: FileVersion): MergeVerdict {
  if (isSame(child, parent)) return { kind: "same" };
  if (isSame(base, parent)) return { kind: "take" };
  if (base === undefined) return { kind: "leave", reason: "a file of that name was made here meanwhile" };
  if (parent === undefined) return { kind: "leave", reason: "it was removed here meanwhile" };
  return { kind: "leave", reason: CHANGED_HERE };
}

function isSame(one: FileVersion, other: FileVersion): boolean {
  if (one === undefined || other === undefined) return one === other;
  return one.hash === other.hash && one.mode === other.mode;
}

const CHANGED_HERE = "it was changed here meanwhile";

export interface Candidates {
  /** Files that one of the two lists has in another state, or not at all. */
  readonly files: readonly string[];
  /** Changes that cannot be merged. */
  readonly left: readonly { readonly path: string; readonly reason: string }[];
}

/**
 * What may differ between two saves: by the times in their lists, so that only these files' content is read. Folders come and
 * go with their files.
 */
export function changedPaths(before: readonly ManifestEntry[], after: readonly ManifestEntry[]): Candidates {
  const old = new Map(before.map((entry) => [entry.path, entry]));
  const now = new Map(after.map((entry) => [entry.path, entry]));
  const files: string[] = [];
  const left: { path: string; reason: string }[] = [];
  for (const path of [...new Set([...old.keys(), ...now.keys()])].toSorted()) {
    const [was, is] = [old.get(path), now.get(path)];
    if (was !== undefined && is !== undefined && isAlike(was, is)) continue;
    const kinds = new Set([was?.kind, is?.kind]);
    if (!path.isWellFormed()) left.push({ path: path.toWellFormed(), reason: "its name is not UTF-8" });
    else if (kinds.has("link")) left.push({ path, reason: "it is a link, or was one" });
    else if (kinds.has("file") && kinds.has("folder"))
      left.push({ path, reason: "it was a folder and is a file, or the other way round" });
    else if (kinds.has("file")) files.push(path);
  }
  return { files, left };
}

function isAlike(one: ManifestEntry, other: ManifestEntry): boolean {
  if (one.kind !== other.kind) return false;
  if (one.kind === "folder") return true;
  if (one.kind === "link") return one.target === other.target;
  return (
    one.size === other.size &&
    one.mode === other.mode &&
    one.mtime === other.mtime &&
    one.ctime === other.ctime &&
    // It may have changed since it was looked at.
    one.ctime !== "?"
  );
}

/** Applies a delegate's changes to its parent's sandbox, file by file. Idempotent: a change that is already there is skipped. */
export interface AppliedFiles {
  readonly applied: readonly string[];
  /** Of them, those that were changed in both places: Git joined the changes. */
  readonly merged: readonly string[];
  readonly notApplied: readonly NotApplied[];
}

export interface NotApplied {
  readonly path: string;
  readonly reason: string;
}

export async function applyFiles(
  sandbox: Pick<Sandbox, "files"> & CommandSandbox,
  changed: readonly ChangedFile[],
  signal: AbortSignal,
): Promise<AppliedFiles> {
  const applied: string[] = [];
  const merged: string[] = [];
  const notApplied: NotApplied[] = [];
  for (const file of changed) {
    signal.throwIfAborted();
    let reason = await applyFile(sandbox.files, file);
    if (reason === CHANGED_HERE) {
      reason = await mergeTexts(sandbox, file);
      if (reason === undefined) merged.push(file.path);
    }
    if (reason === undefined) applied.push(file.path);
    else notApplied.push({ path: file.path, reason });
  }
  return { applied, merged, notApplied };
}

/** @returns why it was not applied */
async function applyFile(
  files: SandboxFiles,
  { path, base, child, bytes }: ChangedFile,
): Promise<string | undefined> {
  const answer = await files.read(path, { maxBytes: 1 });
  // A folder above it may be missing, or be a file by now: the write reports that.
  if (!answer.ok && answer.reason !== "not-found") return answer.message;
  const parent: FileVersion = answer.ok ? { hash: answer.hash, mode: answer.mode } : undefined;
  const verdict = mergeFile(base, child, parent);
  if (verdict.kind === "same") return undefined;
  if (verdict.kind === "leave") return verdict.reason;
  // The sandbox would take a write of the same content for a repeated one, and change nothing.
  if (parent !== undefined && parent.hash === child?.hash) return "only its permissions were changed";
  // Another call may change it meanwhile: the sandbox compares once more.
  const done =
    bytes === undefined
      ? await files.remove(path, parent === undefined ? {} : { ifHash: parent.hash })
      : await files.write(path, bytes, {
          ifHash: parent?.hash ?? null,
          mode: child?.mode,
        });
  return done.ok ? undefined : done.message;
}

/** Larger files are hardly written by hand. */
const MAX_MERGED_BYTES = 1024 * 1024;
const MERGE_TIMEOUT_MS = 30_000;
/** Prints the file of the workspace with the delegate's changes in it. Its input: the file as the delegate got it, then as it left it. */
const MERGE = `d=$(mktemp -d); trap 'rm -rf "$d"' EXIT
head -c "$1" > "$d/base"; cat > "$d/theirs"
git merge-file -p -q "$2" "$d/base" "$d/theirs"`;

/**
 * Joins changes of one text in both places, line by line, as Git does. Idempotent: a file that has the delegate's changes stays as it
 * is.
 * @returns why they cannot be joined
 */
async function mergeTexts(
  sandbox: Pick<Sandbox, "files"> & CommandSandbox,
  { path, child, baseBytes, bytes }: ChangedFile,
): Promise<string | undefined> {
  if (baseBytes === undefined || bytes === undefined) return CHANGED_HERE;
  if (Math.max(baseBytes.length, bytes.length) > MAX_MERGED_BYTES) return CHANGED_HERE;
  const before = await sandbox.files.read(path, { maxBytes: 1 });
  if (!before.ok) return before.message;
  const state = await runOwn(sandbox, {
    id: `merge-${randomUUID()}`,
    argv: ["sh", "-ec", MERGE, "sh", String(baseBytes.length), `./${path}`],
    stdin: Buffer.concat([baseBytes, bytes]),
    timeoutMs: MERGE_TIMEOUT_MS,
  });
  const end = await readEnd(sandbox, state);
  if ("how" in end) {
    const why = lastLine(end.message);
    return `${CHANGED_HERE}${why === "" ? ", in the same lines" : `: ${why}`}`;
  }
  const merged = Buffer.from(end.out);
  if (merged.byteLength !== state.outBytes)
    return `${CHANGED_HERE}, and is no text in UTF-8 of at most 1 MiB`;
  const done = await sandbox.files.write(path, merged, { ifHash: before.hash, mode: child?.mode });
  return done.ok ? undefined : done.message;
}
