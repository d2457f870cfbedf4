/** Fetches files in Git LFS into the mirror's own store, on the worker. */
import { createHash, randomUUID } from "node:crypto";
import { createReadStream } from "node:fs";
import { mkdir, rename, rm, statfs, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { Named } from "../config/repository-place.ts";
import { exists } from "./folders.ts";
import type { GitAccess } from "./git-access.ts";
import { patience } from "./outgoing.ts";
import { lfsObjectsOf, type LfsObject } from "./lfs-pointers.ts";
import {
  askBatch,
  headersOf,
  LfsFailed,
  lfsStoreOf,
  send,
  type LfsAction,
  type LfsStore,
} from "./lfs-store.ts";
import { isDiskError } from "./trouble.ts";

/** A store may take long before it answers. Source: ours. */
export const SILENCE_MS = 300_000;

/** An object's path in one of our repositories. */
export const lfsPath = (folder: string, oid: string): string =>
  join(folder, "lfs", "objects", oid.slice(0, 2), oid.slice(2, 4), oid);

/**
 * Fetches what the files of a commit need and the mirror does not have yet.
 * @param from `url` is the repository's own address, or a submodule's
 * @returns the objects of the commit
 * @throws LfsFailed
 */
export async function fetchLfs(
  access: GitAccess,
  from: { readonly named: Named; readonly url: string; readonly mirror: string; readonly commit: string },
  signal: AbortSignal,
): Promise<readonly LfsObject[]> {
  const { mirror, commit } = from;
  const objects = await lfsObjectsOf(access, mirror, commit);
  const missing: LfsObject[] = [];
  for (const object of objects) if (!(await exists(lfsPath(mirror, object.oid)))) missing.push(object);
  if (missing.length === 0) return objects;
  await unlessTooLarge(mirror, missing);
  const store = await lfsStoreOf(access, { ...from, folder: mirror }, "download", signal);
  const sizes = new Map(missing.map(({ oid, size }) => [oid, size]));
  for (const { oid, actions, error } of await askBatch(store, "download", missing, signal)) {
    const size = sizes.get(oid);
    if (size === undefined) continue;
    if (actions?.download === undefined)
      throw new LfsFailed(
        `the store does not have the object ${oid.slice(0, 12)} of a file of this commit (${error?.message ?? "no reason was given"})`,
      );
    await download(store, actions.download, { oid, size, path: lfsPath(mirror, oid) }, signal);
    sizes.delete(oid);
  }
  if (sizes.size > 0) throw new LfsFailed(`the store did not answer for ${sizes.size} objects`);
  return objects;
}

/** A commit says itself how large its files are, and all sessions share the worker's disk. @throws LfsFailed */
async function unlessTooLarge(folder: string, objects: readonly LfsObject[]): Promise<void> {
  const { bavail, bsize } = await statfs(folder);
  const [bytes, free] = [objects.reduce((sum, { size }) => sum + size, 0), bavail * bsize];
  if (bytes > free / 2)
    throw new LfsFailed(
      `the commit's files have ${Math.ceil(bytes / 2 ** 20)} MiB, more than half of what is free on the worker's disk (${Math.floor(free / 2 ** 20)} MiB); make room there, or start without git.lfs`,
    );
}

/** Writes the object to its path, complete and with the right content, or not at all. */
async function download(
  store: LfsStore,
  action: LfsAction,
  { path, ...object }: LfsObject & { readonly path: string },
  signal: AbortSignal,
): Promise<void> {
  const wait = patience(signal, SILENCE_MS, object.size);
  await mkdir(dirname(path), { recursive: true });
  const part = `${path}.${randomUUID().slice(0, 8)}.part`;
  const wrong = `the store sent different content for the object ${object.oid.slice(0, 12)}`;
  try {
    const bounds = { maxBytes: object.size };
    const init = { method: "GET", headers: headersOf(store, action), signal: wait.signal, bounds };
    const { body } = await send(store, action.href, init);
    await writeObject(part, object, body === null ? [] : wait.heard(body), wrong);
    await rename(part, path);
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof LfsFailed) throw error;
    const { message } = error as Error;
    const what = isDiskError(error)
      ? "the worker's own disk cannot take an object"
      : "an object was not received in full";
    throw new LfsFailed(`${what}: ${message}`, true);
  } finally {
    wait.end();
    await rm(part, { force: true });
  }
}

/** Writes a new file. @throws LfsFailed (with the words `wrong`) if the pieces are not the object's content */
export async function writeObject(
  path: string,
  { oid, size }: LfsObject,
  pieces: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  wrong: string,
): Promise<void> {
  const checked = async function* () {
    const hash = createHash("sha256");
    let left = size;
    for await (const piece of pieces) {
      left -= piece.byteLength;
      if (left < 0) break;
      hash.update(piece);
      yield piece;
    }
    if (left !== 0 || hash.digest("hex") !== oid) throw new LfsFailed(wrong);
  };
  await writeFile(path, checked(), { flag: "wx", mode: 0o600 });
}

/** The objects as `putLfs` takes them. */
export async function* lfsFrames(mirror: string, objects: readonly LfsObject[]): AsyncGenerator<Uint8Array> {
  for (const { oid, size } of objects) {
    yield Buffer.from(`${oid} ${size}\n`);
    yield* createReadStream(lfsPath(mirror, oid)) as AsyncIterable<Uint8Array>;
  }
}
