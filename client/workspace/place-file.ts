/** A file on a person's disk is there as before, or whole and new: never half of it, wherever we are killed. */
import { lstat, rename, rm, rmdir, symlink, utimes, writeFile } from "node:fs/promises";

/** A file as it is to be. */
export interface NewFile {
  readonly kind: "file";
  readonly bytes: Uint8Array;
  readonly mode: number;
  readonly mtimeMs?: number | undefined;
}

export interface NewLink {
  readonly kind: "link";
  readonly target: string | Buffer;
}

/**
 * Makes a file or link, in place of the file, link or empty folder that is there; never through a link.
 * @param beside where it is made first, on the same disk. What is there is removed
 */
export async function placeFile(
  place: string | Buffer,
  beside: string | Buffer,
  made: NewFile | NewLink,
): Promise<void> {
  await rm(beside, { force: true });
  await make(beside, made);
  if ((await lstat(place).catch(() => undefined))?.isDirectory() === true) await rmdir(place);
  try {
    await rename(beside, place);
  } catch (error) {
    await rm(beside, { force: true });
    // A folder in which another disk is mounted: its files cannot be exchanged from outside.
    if ((error as NodeJS.ErrnoException).code !== "EXDEV") throw error;
    await rm(place, { force: true });
    await make(place, made);
  }
}

async function make(place: string | Buffer, made: NewFile | NewLink): Promise<void> {
  if (made.kind === "link") return symlink(made.target, place);
  await writeFile(place, made.bytes, { mode: made.mode, flag: "wx" });
  if (made.mtimeMs !== undefined) await utimes(place, new Date(), new Date(made.mtimeMs));
}
