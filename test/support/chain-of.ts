/** A chain of checkpoints, oldest first, as they are restored. */
import type { StoredChain, StoredPack } from "../../activities/store/workspace-pack.ts";

export function chainOf(...packs: readonly StoredPack[]): StoredChain {
  const newest = packs.at(-1);
  if (newest === undefined) throw new RangeError("A chain has at least one checkpoint.");
  const bytes = packs.map(({ pack }) => ({ byteLength: pack.byteLength, pieces: () => [pack] }));
  return { manifest: newest.manifest, packs: bytes.toReversed() };
}
