/**
 * Keeps what a Docker host keeps for later, bases and stopped sandboxes, within its part of the disk, and within a number. What was not used for
 * longest goes first; what is in use, and the only copy of something, stays.
 */
import { fetchForSession } from "../git/lay-out.ts";
import { reasonOf } from "../contract/errors.ts";
import { rethrowIfCancelled } from "../contract/failures.ts";
import type { WorkspaceDeps } from "../runtime/deps.ts";
import type { EventData } from "../store/event.ts";
import { appendEvents } from "../store/events.ts";
import { basesUsed, type HostDiskUse, noteHostDisk, parkedAmong } from "../store/host-disk.ts";
import { findSandbox } from "../store/sandboxes.ts";
import { lockSandbox, withSandboxLock } from "../store/session-locks.ts";
import { findSession } from "../store/sessions.ts";
import { baseLock } from "./base.ts";
import { giveUpParked, isParkedHere } from "./parked.ts";

/** Something that a host keeps. */
export interface KeptItem {
  readonly kind: "sandbox" | "base";
  /** The session, or the base's key. */
  readonly id: string;
  readonly bytes: number;
  /** How long it was not used, in ms. */
  readonly idleMs: number;
  /** Sessions whose workspaces stand on it. */
  readonly sessions: readonly string[];
  /** It is in use, or the only copy of something. */
  readonly stays: boolean;
}

/** What a host may keep. */
interface HostLimits {
  readonly bytes: number;
  readonly sandboxes: number;
}

export interface Eviction<Item> {
  readonly item: Item;
  /** The bytes would fit: there are too many stopped sandboxes. */
  readonly isForCount: boolean;
}

/**
 * What has to go so that the rest fits: what was not used for longest first, a base only without the sandboxes on it.
 * @returns all that may go if even that is not enough
 */
export function chooseEvictions<Item extends KeptItem>(
  items: readonly Item[],
  limits: HostLimits,
): Eviction<Item>[] {
  const chosen = new Map<Item, Eviction<Item>>();
  const gone = new Set<string>();
  const oldest = items.filter(({ stays }) => !stays).toSorted((one, two) => two.idleMs - one.idleMs);
  let bytes = sumBytes(items);
  let sandboxes = items.filter(isSandbox).length;
  while (bytes > limits.bytes || sandboxes > limits.sandboxes) {
    const isForCount = bytes <= limits.bytes;
    const item = oldest.find(
      (candidate) =>
        !chosen.has(candidate) &&
        (!isForCount || isSandbox(candidate)) &&
        candidate.sessions.every((session) => gone.has(session)),
    );
    if (item === undefined) break;
    chosen.set(item, { item, isForCount });
    bytes -= item.bytes;
    if (!isSandbox(item)) continue;
    sandboxes -= 1;
    gone.add(item.id);
  }
  return [...chosen.values()];
}

const isSandbox = ({ kind }: KeptItem): boolean => kind === "sandbox";

const sumBytes = (items: readonly KeptItem[]): number => items.reduce((sum, { bytes }) => sum + bytes, 0);

/** Chosen: more sessions than people come back to on one host; the engine lists them all, and each clean-up looks at each. */
const MAX_STOPPED = 100;

/** A base that was just made, or that a session just began on, is about to be used. Chosen: longer than a slow opening. */
const BASE_REST_MS = 10 * 60_000;

type DiskDeps = Pick<WorkspaceDeps, "store" | "sandboxHost" | "hostDisk" | "git">;

interface Relief {
  /** The session for whose sake there must be room: it is told which bases went. */
  readonly session?: { readonly id: string; readonly epoch: number; readonly step: number };
  readonly signal?: AbortSignal | undefined;
  /** Nobody waits: a remote may be asked whether a base could be made again. */
  readonly mayAsk?: boolean;
  /** Called with one line for each thing that went, or could not be looked at. */
  readonly say?: (line: string) => void;
}

/**
 * Removes what has to go so that bases and stopped sandboxes fit into this host's limit, and notes for `doctor` what they take.
 * @returns undefined if the host has no limit, or keeps nothing
 * @throws SandboxUnavailable (retryable), the signal's reason
 */
export async function keepWithinDisk(deps: DiskDeps, relief: Relief = {}): Promise<HostDiskUse | undefined> {
  const { store, sandboxHost: host } = deps;
  const limitBytes = await limitOf(deps);
  if (limitBytes === undefined) return undefined;
  const items = await keptOn(deps);
  const usedBytes = sumBytes(items);
  const gone = new Set<KeptItem>();
  for (const { item, isForCount } of chooseEvictions(items, { bytes: limitBytes, sandboxes: MAX_STOPPED })) {
    relief.signal?.throwIfAborted();
    const evicted = {
      host: host.name,
      took: item.kind,
      bytes: item.bytes,
      usedBytes,
      limitBytes,
      limitCount: isForCount ? MAX_STOPPED : undefined,
    };
    const isGone = await evict(deps, relief, item, evicted);
    if (isGone) gone.add(item);
  }
  const left = items.filter((item) => !gone.has(item));
  const parked = left.filter(isSandbox);
  const use = {
    host: host.name,
    usedBytes: sumBytes(left),
    limitBytes,
    bases: left.length - parked.length,
    parked: parked.length,
    unsaved: parked.filter(({ stays }) => stays).length,
  };
  await noteHostDisk(store.db, use);
  return use;
}

/** As `keepWithinDisk`, in the way of a session, which a failure or a slow remote must not hold up: the worker's clean-up does the rest. */
export async function freeHostDisk(deps: DiskDeps, relief: Relief): Promise<void> {
  try {
    await keepWithinDisk(deps, { ...relief, mayAsk: false });
  } catch (error) {
    rethrowIfCancelled(error);
    relief.signal?.throwIfAborted();
  }
}

async function limitOf({ sandboxHost, hostDisk }: DiskDeps): Promise<number | undefined> {
  if (hostDisk === undefined || sandboxHost.bases === undefined) return undefined;
  if ("bytes" in hostDisk) return hostDisk.bytes;
  const diskBytes = await sandboxHost.diskBytes?.();
  return diskBytes === undefined ? undefined : Math.floor(hostDisk.share * diskBytes);
}

async function keptOn({ store, sandboxHost: host }: DiskDeps): Promise<KeptItem[]> {
  const made = (await host.bases?.list()) ?? [];
  const parked = await parkedAmong(store.db, await host.sessions());
  const keys = made.map(({ key }) => key);
  const uses = new Map((await basesUsed(store.db, host.name, keys)).map((use) => [use.key, use]));
  return [
    ...parked.map(({ isOnlyCopy, ...item }) => ({
      ...item,
      kind: "sandbox" as const,
      sessions: [],
      stays: isOnlyCopy,
    })),
    ...made.map(({ key, bytes, sessions }) => {
      // Without a row no session needs it any more.
      const idleMs = uses.get(key)?.idleMs ?? Infinity;
      return { kind: "base" as const, id: key, bytes, idleMs, sessions, stays: idleMs < BASE_REST_MS };
    }),
  ];
}

type Evicted = Omit<EventData["host:evicted"], "name">;

async function evict(deps: DiskDeps, relief: Relief, item: KeptItem, evicted: Evicted): Promise<boolean> {
  const { say = () => undefined } = relief;
  try {
    const name =
      item.kind === "sandbox"
        ? await evictSandbox(deps, item.id, evicted)
        : await evictBase(deps, relief, item.id, evicted);
    if (name !== undefined) say(`${evictedWords(evicted)}: ${name}`);
    return name !== undefined;
  } catch (error) {
    rethrowIfCancelled(error);
    say(`could not remove a ${item.kind} to make room, and tries again later: ${reasonOf(error)}`);
    return false;
  }
}

const evictedWords = ({ took, limitCount }: Evicted): string =>
  limitCount === undefined
    ? `removed a ${took === "base" ? "base" : "stopped sandbox"} to make room on the host (LONGHAUL_HOST_DISK)`
    : `removed a stopped sandbox: the host keeps ${limitCount}`;

/** @returns its container's name; undefined if it was opened or removed meanwhile */
async function evictSandbox(
  { store, sandboxHost: host }: DiskDeps,
  id: string,
  evicted: Evicted,
): Promise<string | undefined> {
  return withSandboxLock(store, id, async (tx) => {
    const row = await findSandbox(tx, id);
    const session = await findSession(tx, id);
    if (session === undefined || row === undefined || row.leftOut.length > 0) return undefined;
    if (!(await isParkedHere(row, host))) return undefined;
    await giveUpParked(tx, host, row, "to make room on its host");
    const name = host.nameOf?.(id) ?? id;
    const data = { ...evicted, name };
    await appendEvents(tx, id, session.epoch, [{ type: "host:evicted", step: session.reached, data }]);
    return name;
  });
}

/** @returns its commit; undefined if something stands on it, or it could not be made again */
async function evictBase(
  deps: DiskDeps,
  { session, signal, mayAsk = true }: Relief,
  key: string,
  evicted: Evicted,
): Promise<string | undefined> {
  const { store, sandboxHost: host } = deps;
  const [before] = await basesUsed(store.db, host.name, [key]);
  const canGo =
    before?.neededBy == null ||
    (mayAsk && (await canBeFetched(deps, before.neededBy, before.commit, signal)));
  if (!canGo) return undefined;
  return store.db.transaction(async (tx) => {
    await lockSandbox(tx, baseLock(host, key));
    const [use] = await basesUsed(tx, host.name, [key]);
    if (use !== undefined && use.idleMs < BASE_REST_MS) return undefined;
    if (use?.neededBy != null && before?.neededBy == null) return undefined;
    if ((await host.bases?.forget(key)) !== true) return undefined;
    const name = use?.commit ?? key;
    if (session !== undefined) {
      const { id, epoch, step } = session;
      await appendEvents(tx, id, epoch, [{ type: "host:evicted", step, data: { ...evicted, name } }]);
    }
    return name;
  });
}

/** Whether a base that the store does not have could be made again, from the remote or the worker's copy of it, for a session on it. */
async function canBeFetched(
  { store, git: access }: DiskDeps,
  sessionId: string,
  commit: string,
  signal: AbortSignal = new AbortController().signal,
): Promise<boolean> {
  const repository = (await findSession(store.db, sessionId))?.config.repository;
  if (access === undefined || repository === undefined) return false;
  const start = { ...repository, ref: commit, push: "never", pr: "none" } as const;
  return fetchForSession(access, start, sessionId, signal).then(
    () => true,
    (error: unknown) => {
      rethrowIfCancelled(error);
      return false;
    },
  );
}
