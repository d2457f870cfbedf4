/** What one save of a workspace may hold: in Postgres, or with an object store. */
import type { Queryable } from "../store/db.ts";
import { MAX_FILE_BYTES, MAX_PACK_BYTES } from "../store/workspace-manifest.ts";

/** The limits of a save. What exceeds them is reported. */
export const LIMITS = {
  /** Files, folders and links. The client copies in at most 200,000. */
  entries: 300_000,
  /** Of the uncompressed listing: 300,000 names of 255 bytes, the longest, fit. */
  listingBytes: 128 * 1024 * 1024,
  /** Linux's own limit, PATH_MAX: no ordinary program opens a longer path. */
  pathBytes: 4_095,
  fileBytes: MAX_FILE_BYTES,
  bytes: MAX_PACK_BYTES,
};

export type SaveLimits = typeof LIMITS;

/** With an object store. Source: the requirements; nothing of it is held in memory. */
export const OBJECT_LIMITS: SaveLimits = { ...LIMITS, fileBytes: 2 * 2 ** 30, bytes: 4 * 2 ** 30 };

/** What one save of this store may hold. */
export const saveLimits = ({ objects }: Pick<Queryable, "objects">): SaveLimits =>
  objects === undefined ? LIMITS : OBJECT_LIMITS;

/** Of a base: it is no save, and Git has told how large it is. */
export const UNBOUNDED: SaveLimits = {
  entries: Number.MAX_SAFE_INTEGER,
  listingBytes: 2 * MAX_PACK_BYTES,
  pathBytes: LIMITS.pathBytes,
  fileBytes: Number.MAX_SAFE_INTEGER,
  bytes: Number.MAX_SAFE_INTEGER,
};
