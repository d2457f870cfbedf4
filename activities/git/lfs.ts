/** The content of files in Git LFS on the worker: fetched into the mirror's own store, uploaded to a push's. */
import { createHash, randomUUID } from "node:crypto";
import { createReadStream } from "node:fs";
import { copyFile, mkdir, rename, rm, statfs, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { NamedRepositories, NetworkRule } from "../config/repository-place.ts";
import type { CommandSandbox } from "../sandbox/own-command.ts";
import type { GitAccess } from "./git-access.ts";
import { patience } from "../process/remote-fetch.ts";
import {
  lfsObjectsOf,
  type LfsObject,
  lfsObjectsSince,
  askBatch,
  toHeaders,
  LfsFailed,
  createLfsStore,
  send,
  type LfsAction,
  type LfsStore,
  uploadStore,
  type LfsOffer,
} from "./lfs-store.ts";
import { hasCommit } from "./mirror.ts";
import { exists } from "./own-repositories.ts";
import type { Relay } from "./relay.ts";
import { readLfsObject } from "./sandbox-git.ts";
import { isDiskError } from "./trouble.ts";

/** Chosen: a store may take long before it answers. */
const SILENCE_MS = 300_000;

/** An object's path in one of our repositories. */
const lfsPath = (folder: string, oid: string): string =>
  join(folder, "lfs", "objects", oid.slice(0, 2), oid.slice(2, 4), oid);

/**
 * Fetches what the files of a commit need and the mirror does not have yet.
 * @param from `url` is the repository's own address, or a submodule's
 * @returns the objects of the commit
 * @throws LfsFailed
 */
export async function fetchLfs(
  access: GitAccess,
  from: {
    readonly named: NamedRepositories;
    readonly url: string;
    readonly mirror: string;
    readonly commit: string;
  },
  signal: AbortSignal,
): Promise<readonly LfsObject[]> {
  const { mirror, commit } = from;
  const objects = await lfsObjectsOf(access, mirror, commit);
  const missing: LfsObject[] = [];
  for (const object of objects) if (!(await exists(lfsPath(mirror, object.oid)))) missing.push(object);
  if (missing.length === 0) return objects;
  await unlessTooLarge(mirror, missing);
  const store = await createLfsStore(access, { ...from, folder: mirror }, "download", signal);
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

/**
 * Gives the relay the content of a commit's files that Git LFS keeps: of the mirror, else of the sandbox that made the commit, else of
 * the remote's store. Each is checked against its name.
 * @returns the objects of the commit
 * @throws LfsFailed, SandboxUnavailable (retryable), SandboxLost
 */
export async function gatherLfs(
  relay: Relay,
  sandbox: CommandSandbox,
  from: {
    readonly named: NamedRepositories;
    readonly url: string;
    readonly mirror: string;
    readonly commit: string;
  },
  signal: AbortSignal,
): Promise<readonly LfsObject[]> {
  const { access, folder } = relay;
  for (const object of await lfsObjectsOf(access, folder, from.commit)) {
    const path = lfsPath(folder, object.oid);
    if (await exists(path)) continue;
    await mkdir(dirname(path), { recursive: true });
    const known = lfsPath(from.mirror, object.oid);
    if (await exists(known)) await copyFile(known, path);
    else
      await withObject(relay, sandbox, object, (part) => rename(part, path)).catch((error: unknown) => {
        if (!(error instanceof LfsFailed)) throw error;
      });
  }
  return fetchLfs(access, { ...from, mirror: folder }, signal);
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
    const init = { method: "GET", headers: toHeaders(store, action), signal: wait.signal, bounds };
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
async function writeObject(
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

export interface LfsPush {
  readonly named: NamedRepositories;
  readonly network: NetworkRule;
  /** The commit that the session started from, which is on the remote. If the relay does not have it, the whole history of `commit` is searched. */
  readonly base: string;
  readonly commit: string;
  readonly mirror: string;
  /** The most that all objects together may have. */
  readonly maxBytes: number;
  readonly signal: AbortSignal;
}

/**
 * Uploads the commits' files that the remote's store lacks. A second attempt uploads only what the first one did not.
 * @throws LfsFailed, SandboxUnavailable (retryable), SandboxLost
 */
export async function pushLfs(relay: Relay, sandbox: CommandSandbox, push: LfsPush): Promise<void> {
  const { access, folder } = relay;
  const { named, network, commit, signal } = push;
  const base = (await hasCommit(access, folder, push.base)) ? push.base : undefined;
  const objects = await lfsObjectsSince(access, folder, commit, base);
  if (objects.length === 0) return;
  const { url } = named;
  const store = await uploadStore(access, { named, network, url, folder, commit, base }, signal);
  const offers = await askBatch(store, "upload", objects, signal);
  const sizes = new Map(objects.map(({ oid, size }) => [oid, size]));
  const refused = offers.find(({ oid, error }) => sizes.has(oid) && error !== undefined)?.error;
  if (refused !== undefined) throw new LfsFailed(`the store refuses a file: ${refused.message}`);
  const uploads = offers.filter(({ oid, actions }) => sizes.has(oid) && actions?.upload !== undefined);
  const bytes = uploads.reduce((sum, { oid }) => sum + (sizes.get(oid) ?? 0), 0);
  if (bytes > push.maxBytes)
    throw new LfsFailed(
      `the files are larger than git.maxBundle together (${Math.ceil(bytes / 2 ** 20)} of ${Math.floor(push.maxBytes / 2 ** 20)} MiB)`,
    );
  for (const offer of uploads) {
    const object = { oid: offer.oid, size: sizes.get(offer.oid) ?? 0 };
    const objectPath = lfsPath(push.mirror, object.oid);
    if (await exists(objectPath)) await upload(store, offer, { ...object, path: objectPath }, signal);
    else
      await withObject(relay, sandbox, object, (path) => upload(store, offer, { ...object, path }, signal));
  }
}

/** Copies the object from the sandbox to a file in the relay's folder, which is removed after `use`. */
async function withObject(
  { folder }: Relay,
  sandbox: CommandSandbox,
  object: LfsObject,
  use: (path: string) => Promise<void>,
): Promise<void> {
  const { oid, size } = object;
  const path = join(folder, `incoming-${randomUUID()}.lfs`);
  const wrong = `the content of a file that Git LFS keeps is not in the workspace's store (object ${oid.slice(0, 12)}): commit the file again, or take it out of LFS`;
  try {
    const pieces = await readLfsObject(sandbox, oid, size);
    if (pieces === undefined) throw new LfsFailed(wrong);
    await writeObject(path, object, pieces, wrong);
    await use(path);
  } finally {
    await rm(path, { force: true });
  }
}

async function upload(
  store: LfsStore,
  { actions }: LfsOffer,
  { oid, size, path }: LfsObject & { readonly path: string },
  signal: AbortSignal,
): Promise<void> {
  if (actions?.upload === undefined) return;
  const wait = patience(signal, SILENCE_MS, size);
  try {
    await send(store, actions.upload.href, {
      method: "PUT",
      headers: {
        "content-type": "application/octet-stream",
        ...toHeaders(store, actions.upload),
        "content-length": String(size),
      },
      body: ReadableStream.from(wait.heard(createReadStream(path))),
      duplex: "half",
      signal: wait.signal,
    });
    if (actions.verify === undefined) return;
    await send(store, actions.verify.href, {
      method: "POST",
      headers: {
        accept: "application/vnd.git-lfs+json",
        "content-type": "application/vnd.git-lfs+json",
        ...toHeaders(store, actions.verify),
      },
      body: JSON.stringify({ oid, size }),
      signal: wait.signal,
    });
  } finally {
    wait.end();
  }
}
