/**
 * Git LFS: finds the pointers of commits in one of our repositories, and asks a store for their objects, by its batch API with the transfer `basic`. Source: git-lfs, docs/api/batch.md and
 * docs/api/basic-transfers.md.
 */
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { repositoryAddress } from "../config/git-settings.ts";
import {
  howToName,
  isNamed,
  isSameServer,
  isWithinNetwork,
  type NamedRepositories,
  type NetworkRule,
} from "../config/repository-place.ts";
import { isNetworkTrouble, passes } from "../contract/errors.ts";
import { readJson, bodyText, type Bounds } from "../process/bounded-body.ts";
import type { GitAccess } from "./git-access.ts";
import { gitFetch, noAnswerReason, serverWords } from "../process/remote-fetch.ts";
import { gitReason } from "./git-words.ts";
import { refusedRemote } from "./remote.ts";
import { credentialFor, gitEnvironment, GitFailed, shellQuoted, sshCommand, git } from "./run-git.ts";
import { configIn } from "./submodules.ts";
import { CredentialUnavailable, quoted } from "./trouble.ts";

export type LfsOperation = "download" | "upload";

/** Where to ask, and as whom. */
export interface LfsStore {
  readonly endpoint: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Why an action's address must not be contacted; undefined if it may be. */
  readonly refused: (url: string) => Promise<string | undefined>;
  /** What to do if the store wants a credential; undefined if it has the one that there is. */
  readonly closed?: string | undefined;
}

/** What the store offers for an object; without actions there is nothing to do. */
export interface LfsOffer extends LfsObject {
  readonly actions?: Partial<Record<LfsOperation | "verify", LfsAction>>;
  readonly error?: { readonly code: number; readonly message: string };
}

export interface LfsAction {
  readonly href: string;
  readonly header?: Readonly<Record<string, string>>;
}

/** The store did not do what was asked for. `isPassing`: asking again may help. */
export class LfsFailed extends Error {
  override readonly name = "LfsFailed";
  readonly isPassing: boolean;

  constructor(message: string, isPassing = false) {
    super(message);
    this.isPassing = isPassing;
  }
}

const JSON_TYPE = "application/vnd.git-lfs+json";
const ASK_MS = 60_000;
const SSH_MS = 30_000;
/** Source: git-lfs asks for as many at once. */
const OBJECTS_AT_ONCE = 100;
const MAX_HOPS = 3;

/** Where a repository is whose store is looked for, and who named it. */
export interface StoreOf {
  /** What the session's person named, which decides what may be contacted. */
  readonly named: NamedRepositories;
  readonly url: string;
  /** A repository of ours that has `commit`, whose `.lfsconfig` may name the store. */
  readonly folder: string;
  readonly commit: string;
}

/**
 * The store of a repository: the one that `.lfsconfig` of the commit names, else the one that its address implies.
 * @throws LfsFailed if there is no permitted store
 */
export async function createLfsStore(
  access: GitAccess,
  from: StoreOf,
  operation: LfsOperation,
  signal: AbortSignal,
): Promise<LfsStore> {
  const { named, url, folder, commit } = from;
  const limited = access.limitedTo(named);
  const own = (await storesNamedIn(limited, folder, commit)).get("lfs.url") ?? "";
  const address = repositoryAddress(own === "" ? url : own);
  const wrong = "wrong" in address ? address.wrong : await refusedRemote(named, address.url);
  if (wrong !== undefined) throw new LfsFailed(`its store is not contacted: ${wrong}`);
  if ("wrong" in address || address.kind === "file")
    throw new LfsFailed("a repository in a folder has no store to contact");
  // Its own server was just accepted.
  const refused = async (action: string) =>
    isSameServer(address.url, action) ? undefined : refusedRemote(named, action);
  if (address.kind === "ssh") return { ...(await overSsh(limited, address.url, operation, signal)), refused };
  // Unless `.lfsconfig` names a store, the store is part of the repository and has its credential.
  const credential = await credentialFor(limited, address.url, signal).catch((error: unknown) => {
    if (!(error instanceof CredentialUnavailable)) throw error;
    throw new LfsFailed(error.message, error.isPassing);
  });
  const baseUrl = address.url.replace(/\/+$/, "");
  const endpoint = own === "" ? `${baseUrl.replace(/\.git$/, "")}.git/info/lfs` : baseUrl;
  const basic = credential && Buffer.from(`${credential.user}:${credential.password}`).toString("base64");
  const closed = limited.opens(address.url) ? undefined : howToName(address.url);
  return {
    endpoint,
    headers: basic === undefined ? {} : { authorization: `Basic ${basic}` },
    refused,
    closed,
  };
}

/**
 * The store that work is uploaded to. What a session writes into `.lfsconfig` directs no request: a store that neither the commit that
 * it started from nor the person names is refused, and so is one that the session's network rule does not let through.
 * @throws LfsFailed
 */
export async function uploadStore(
  access: GitAccess,
  to: StoreOf & { readonly base: string | undefined; readonly network: NetworkRule },
  signal: AbortSignal,
): Promise<LfsStore> {
  const { named, folder, commit, base, network } = to;
  const before = base === undefined ? [] : [...(await storesNamedIn(access, folder, base)).values()];
  for (const store of (await storesNamedIn(access, folder, commit)).values()) {
    if (!before.includes(store) && !isNamed(named, store))
      throw new LfsFailed(
        `.lfsconfig names the store ${quoted(store)}, which the commit that the session started from does not name, so it is not contacted; ${howToName(store)}`,
      );
    if (!isWithinNetwork(network, named, store))
      throw new LfsFailed(
        `sandbox.network does not let the store ${quoted(store)} in .lfsconfig be contacted; ${howToName(store)}`,
      );
  }
  return createLfsStore(access, to, "upload", signal);
}

/** The addresses in a commit's `.lfsconfig`, by their keys. Source: git-lfs, docs/man/git-lfs-config.adoc. */
async function storesNamedIn(
  access: GitAccess,
  folder: string,
  commit: string,
): Promise<ReadonlyMap<string, string>> {
  const listed = await configIn(access, folder, `${commit}:.lfsconfig`).catch((error: unknown) => {
    if (!(error instanceof GitFailed)) throw error;
    throw new LfsFailed(`.lfsconfig cannot be read: ${gitReason(error.result.err)}`);
  });
  const entries = listed.split("\0").map((line) => line.split("\n") as [string, string?]);
  return new Map(
    entries.flatMap(([key, value = ""]) =>
      /^(lfs\.(push)?url|remote\..+\.lfs(push)?url)$/.test(key) && value !== ""
        ? [[key, value] as const]
        : [],
    ),
  );
}

/** Asks an ssh server for its store and for access to it. Source: git-lfs, docs/api/server-discovery.md. */
async function overSsh(
  access: GitAccess,
  url: string,
  operation: LfsOperation,
  signal: AbortSignal,
): Promise<Omit<LfsStore, "refused">> {
  const parsed = URL.parse(url);
  const [, short = "", path = ""] = /^([^:/]+):(.+)$/.exec(parsed?.protocol === "ssh:" ? "" : url) ?? [];
  const user = parsed?.username ? `${parsed.username}@` : "";
  const where = short === "" ? `${user}${parsed?.hostname ?? ""}` : short;
  const port = parsed?.port ? ["-p", parsed.port] : [];
  const command = `git-lfs-authenticate ${shellQuoted(short === "" ? (parsed?.pathname ?? "") : path)} ${operation}`;
  const script = `exec ${sshCommand(access)} "$@"`;
  const options = { env: gitEnvironment(access), signal, timeout: SSH_MS };
  try {
    const sshArguments = ["-c", script, "sh", ...port, where, command];
    const { stdout } = await promisify(execFile)("sh", sshArguments, options);
    const { href, header = {} } = JSON.parse(stdout) as LfsAction;
    return { endpoint: href.replace(/\/+$/, ""), headers: header };
  } catch (error) {
    signal.throwIfAborted();
    const { stderr = "", message } = error as { stderr?: string; message: string };
    throw new LfsFailed(`its ssh server does not say where the store is: ${gitReason(stderr || message)}`);
  }
}

/** What is to be done for each object. @throws LfsFailed */
export async function askBatch(
  store: LfsStore,
  operation: LfsOperation,
  objects: readonly LfsObject[],
  signal: AbortSignal,
): Promise<LfsOffer[]> {
  const offers: LfsOffer[] = [];
  for (let at = 0; at < objects.length; at += OBJECTS_AT_ONCE) {
    const body = JSON.stringify({
      operation,
      transfers: ["basic"],
      hash_algo: "sha256",
      objects: objects.slice(at, at + OBJECTS_AT_ONCE),
    });
    const headers = { ...store.headers, accept: JSON_TYPE, "content-type": JSON_TYPE };
    const response = await send(store, `${store.endpoint}/objects/batch`, {
      method: "POST",
      headers,
      body,
      signal: AbortSignal.any([signal, AbortSignal.timeout(ASK_MS)]),
    });
    const answer = (await readJson(response).catch(() => undefined)) as { objects?: LfsOffer[] } | undefined;
    signal.throwIfAborted();
    if (!Array.isArray(answer?.objects))
      throw new LfsFailed(`${store.endpoint} did not answer in the form of Git LFS`);
    offers.push(...answer.objects.slice(0, OBJECTS_AT_ONCE));
  }
  return offers;
}

/** An action's own headers; on the store's own server also ours, unless the action contains an authorization. */
export function toHeaders(store: LfsStore, { href, header = {} }: LfsAction): Record<string, string> {
  const letsIn = Object.keys(header).some((name) => name.toLowerCase() === "authorization");
  return { ...(!letsIn && isSameServer(store.endpoint, originOf(href)) ? store.headers : {}), ...header };
}

/** An action's address may hold a credential in its query, so only its origin is ever shown. */
const originOf = (href: string): string => URL.parse(href)?.origin ?? "";

/** Sends a request to the store and follows its redirects; checks each address. @throws LfsFailed for every answer but 2xx */
export async function send(
  store: LfsStore,
  url: string,
  init: RequestInit & { readonly duplex?: "half"; readonly bounds?: Bounds },
): Promise<Response> {
  let at = url;
  for (let hop = 0; ; hop += 1) {
    const origin = originOf(at);
    const wrong = await store.refused(origin === "" ? at : `${origin}/`);
    if (wrong !== undefined)
      throw new LfsFailed(`its store leads to an address that is not contacted: ${wrong}`);
    // No other host gets the credentials.
    const headers = hop === 0 || origin === originOf(url) ? init.headers : {};
    const requestInit = { ...init, ...(headers ? { headers } : {}), redirect: "manual" } as const;
    const response = await gitFetch(at, requestInit).catch((error: unknown) => {
      init.signal?.throwIfAborted();
      throw new LfsFailed(noAnswerReason(origin, error), isNetworkTrouble(error));
    });
    if (response.ok) return response;
    const { status } = response;
    const next = response.headers.get("location");
    const isMoved = status >= 300 && status < 400 && next !== null;
    if (isMoved && init.method === "GET" && hop < MAX_HOPS) {
      await response.body?.cancel();
      at = new URL(next, at).href;
      continue;
    }
    const text = await bodyText(response).catch(() => "");
    const why =
      status === 401 || status === 403
        ? ` (${store.closed === undefined ? "the worker's credential for it does not grant access" : `no credential of the worker is used for it; ${store.closed}`})`
        : "";
    throw new LfsFailed(`${origin} answered ${status}${why}: ${serverWords(text)}`, passes.http(status));
  }
}

export interface LfsObject {
  /** SHA-256 of the content, hex. */
  readonly oid: string;
  readonly size: number;
}

/** Pointers are smaller. Source: git-lfs, docs/spec.md. */
const MAX_POINTER_BYTES = 1_024;
/** The lines of the version and the hash alone are longer. */
const MIN_POINTER_BYTES = 110;
/** Per call of git, so that the output stays far below its limit. */
const BLOBS_AT_ONCE = 20_000;

/** The objects of a commit's files. */
export async function lfsObjectsOf(access: GitAccess, folder: string, commit: string): Promise<LfsObject[]> {
  const listed = await git(access, ["ls-tree", "-r", "-l", "--full-tree", commit], { cwd: folder });
  const files = /^100\d{3} blob (?<blob>[0-9a-f]{40,64}) +(?<size>\d+)\t/gm;
  return readPointers(access, folder, listed.matchAll(files));
}

/** The objects of all files in a commit's history that are not in the history of `base`; undefined: of its whole history. */
export async function lfsObjectsSince(
  access: GitAccess,
  folder: string,
  commit: string,
  base: string | undefined,
): Promise<LfsObject[]> {
  const range = base === undefined ? [commit] : [commit, `^${base}`];
  const objects = await git(access, ["rev-list", "--objects", "--no-object-names", ...range], {
    cwd: folder,
  });
  const check = ["cat-file", "--batch-check=%(objecttype) %(objectsize) %(objectname)"];
  const checked = await git(access, check, { cwd: folder, input: `${objects}\n` });
  return readPointers(access, folder, checked.matchAll(/^blob (?<size>\d+) (?<blob>[0-9a-f]{40,64})$/gm));
}

const isPointerSize = (bytes: number): boolean => bytes >= MIN_POINTER_BYTES && bytes < MAX_POINTER_BYTES;

/** @param listed blobs with their sizes */
async function readPointers(
  access: GitAccess,
  folder: string,
  listed: Iterable<RegExpMatchArray>,
): Promise<LfsObject[]> {
  const small = [...listed].filter(({ groups }) => isPointerSize(Number(groups?.["size"])));
  const blobs = small.map(({ groups }) => groups?.["blob"] ?? "");
  const objects = new Map<string, LfsObject>();
  for (let at = 0; at < blobs.length; at += BLOBS_AT_ONCE) {
    const input = `${blobs.slice(at, at + BLOBS_AT_ONCE).join("\n")}\n`;
    const text = await git(access, ["cat-file", "--batch"], { cwd: folder, input });
    for (const object of pointersIn(text)) objects.set(object.oid, object);
  }
  return [...objects.values()];
}

/** Parses the output of `git cat-file --batch`: each blob begins on a new line, after one with its hash. */
function pointersIn(batch: string): LfsObject[] {
  const pointers = batch.matchAll(
    /^[0-9a-f]{40,64} blob \d+\nversion https:\/\/git-lfs\.github\.com\/spec\/v1\n(?:ext-\d-[^\n]*\n)*oid sha256:([0-9a-f]{64})\nsize (\d{1,15})$/gm,
  );
  return [...pointers].map(([, oid = "", size]) => ({ oid, size: Number(size) }));
}
