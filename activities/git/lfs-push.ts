/** Uploads the content of a push's Git LFS files to the remote's store, before the branch that refers to it. */
import { randomUUID } from "node:crypto";
import { createReadStream } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import type { Named, NetworkRule } from "../config/repository-place.ts";
import { exists } from "./folders.ts";
import { lfsPath, SILENCE_MS, writeObject } from "./lfs.ts";
import { lfsObjectsSince, type LfsObject } from "./lfs-pointers.ts";
import {
  askBatch,
  headersOf,
  LfsFailed,
  send,
  uploadStore,
  type LfsOffer,
  type LfsStore,
} from "./lfs-store.ts";
import { hasCommit } from "./mirror.ts";
import { patience } from "./outgoing.ts";
import type { Relay } from "./relay.ts";
import type { CommandSandbox } from "../sandbox/own-command.ts";
import { readLfsObject } from "./sandbox-git.ts";

export interface LfsPush {
  readonly named: Named;
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
  const wanted = offers.filter(({ oid, actions }) => sizes.has(oid) && actions?.upload !== undefined);
  const bytes = wanted.reduce((sum, { oid }) => sum + (sizes.get(oid) ?? 0), 0);
  if (bytes > push.maxBytes)
    throw new LfsFailed(
      `the files are larger than git.maxBundle together (${Math.ceil(bytes / 2 ** 20)} of ${Math.floor(push.maxBytes / 2 ** 20)} MiB)`,
    );
  for (const offer of wanted) {
    const object = { oid: offer.oid, size: sizes.get(offer.oid) ?? 0 };
    const kept = lfsPath(push.mirror, object.oid);
    if (await exists(kept)) await upload(store, offer, { ...object, path: kept }, signal);
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
        ...headersOf(store, actions.upload),
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
        ...headersOf(store, actions.verify),
      },
      body: JSON.stringify({ oid, size }),
      signal: wait.signal,
    });
  } finally {
    wait.end();
  }
}
