/** What a delegate changed in its files, with their content: from its first save to its last. */
import { createHash } from "node:crypto";
import { checkpointChain, latestCheckpoint } from "../store/checkpoints.ts";
import type { Database } from "../store/db.ts";
import { unpackManifest, unpackMissing, type ManifestEntry } from "../store/workspace-manifest.ts";
import { readFiles } from "../store/workspace-pack.ts";
import { changedPaths, type FileState } from "./merge.ts";

export interface ChangedFile {
  readonly path: string;
  readonly base: FileState;
  readonly child: FileState;
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
        const wanted = new Set(paths.filter((path) => has.has(path)));
        if (id === undefined || wanted.size === 0) return new Map<string, Uint8Array>();
        return readFiles((await checkpointChain(tx, id)).packs, wanted);
      };
      const before = base === undefined ? [] : unpackManifest((await checkpointChain(tx, base)).manifest);
      const after = unpackManifest(latest.manifest);
      const { files: differing, left } = changedPaths(before, after);
      // What the last save could not hold was not removed.
      const missing = unpackMissing(latest.manifest);
      const held = new Set(after.map(({ path }) => path));
      const files = differing.filter((path) => held.has(path) || missing.reasonOf(path) === undefined);
      const [old, now] = [await read(base, before, files), await read(latest.id, after, files)];
      const changed = files.map((path): ChangedFile => {
        const bytes = now.get(path);
        return {
          path,
          base: stateOf(before, path, old.get(path)),
          child: stateOf(after, path, bytes),
          bytes,
        };
      });
      return { files: changed.filter(differs), left };
    },
    { isolationLevel: "repeatable read" },
  );
}

function stateOf(entries: readonly ManifestEntry[], path: string, bytes: Uint8Array | undefined): FileState {
  if (bytes === undefined) return undefined;
  const hash = createHash("sha256").update(bytes).digest("hex");
  return { hash, mode: entries.find((entry) => entry.path === path)?.mode };
}

const differs = ({ base, child }: ChangedFile): boolean =>
  base?.hash !== child?.hash || base?.mode !== child?.mode;
