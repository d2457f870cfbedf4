/**
 * At the start and at intervals, closes the sandboxes of sessions that are over, and ends the rows of those that no run
 * will end.
 */
import type { Client } from "@temporalio/client";
import type { NativeConnection } from "@temporalio/worker";
import type { GitAccess } from "../activities/git/git-access.ts";
import { removeUnusedRepositories } from "../activities/git/own-repositories.ts";
import type { SandboxHost } from "../activities/sandbox/sandbox-host.ts";
import type { CountedSaves } from "../activities/runtime/counted-saves.ts";
import { closeSandbox } from "../activities/workspace/close-sandbox.ts";
import type { Queryable } from "../activities/store/db.ts";
import { findSandbox, sandboxOwners, type SandboxOwner } from "../activities/store/sandboxes.ts";
import { createSessionSandboxes, removeStray } from "../activities/workspace/session-sandbox.ts";
import { giveUpParked, isParkedHere } from "../activities/workspace/parked.ts";
import { keepWithinDisk } from "../activities/workspace/host-disk.ts";
import type { DiskLimit } from "../activities/config/setting-values.ts";
import type { Store } from "../activities/store/db.ts";
import { endedSessionIds, quietSessions } from "../activities/store/session-standing.ts";
import { lastUsedStep } from "../activities/store/missing-steps.ts";
import { activeSessionIds } from "../activities/store/sessions.ts";
import { cancelIfOver, endedSession } from "./session-end.ts";
import { withSandboxLock } from "../activities/store/session-locks.ts";
import type { OperatorPolicy } from "../activities/config/operator-policy.ts";
import { noteHost } from "../activities/store/warms.ts";
import { appendEvents } from "../activities/store/events.ts";
import { findSession } from "../activities/store/sessions.ts";
import { createRetention, removeDeleted, removeDeletedRelays, removeDeletedSetUps } from "./retention.ts";
import type { CodecKey } from "../temporal/codec.ts";
import { askAgainIfGone, listedAsRunning } from "../temporal/runs.ts";
import { temporalClient } from "../temporal/temporal-client.ts";
import type { Logger } from "./logger.ts";
import type { Service } from "../activities/process/service.ts";
import { Repeating } from "./services.ts";
import { reasonOf } from "../activities/contract/errors.ts";

export interface ReaperOptions {
  readonly host: SandboxHost;
  readonly store: Store;
  readonly countedSaves: CountedSaves;
  readonly connection: NativeConnection;
  readonly namespace: string;
  /** Of our workflows. */
  readonly taskQueue: string;
  /** Of this host's sandboxes; absent: the same. */
  readonly hostQueue?: string | undefined;
  /** Keys that encrypt what Temporal sees; default: none. */
  readonly codecKeys?: readonly CodecKey[];
  readonly logger: Logger;
  readonly everyMs: number;
  /** Folder of this worker's own repositories. */
  readonly git?: GitAccess | undefined;
  /** Cleans texts of secrets before they are stored. */
  readonly clean?: ((text: string) => string) | undefined;
  /** How long the operator keeps what. */
  readonly retention?: OperatorPolicy["retention"];
  /** How much bases and stopped sandboxes may take on this host; absent: any amount. */
  readonly hostDisk?: DiskLimit | undefined;
}

type RoundOptions = Pick<
  ReaperOptions,
  "host" | "store" | "countedSaves" | "logger" | "clean" | "taskQueue" | "hostQueue"
> & {
  readonly client: Client;
};

/** The clean-up of a worker: at its start, and again after each interval. */
export function createReaper(options: ReaperOptions): Service {
  const client = temporalClient(options, options.codecKeys);
  const { retention = {}, logger } = options;
  const checks = [
    reapSandboxes,
    ({ store, host: { name: host }, hostQueue: taskQueue }: RoundOptions) =>
      noteHost(store.db, { host, taskQueue }),
    ({ host: sandboxHost, ...round }: ReaperOptions) =>
      keepWithinDisk({ ...round, sandboxHost }, { say: (line) => logger.info(line) }),
    endLeftSessions,
    createQuestionLook(),
    createRetention(retention),
    reapRelays,
  ];
  const onFailure = (error: unknown) =>
    logger.warn({ reason: reasonOf(error) }, "a part of the clean-up failed; the next round tries again");
  const round = async () => {
    // One part can fail, as when the engine is away, without the others.
    for (const check of checks)
      await (async () => void (await check({ ...options, client })))().catch(onFailure);
  };
  return new Repeating({ round, waitMs: () => options.everyMs, isDueAtStart: true, onFailure });
}

/**
 * One round: closes this host's sandboxes whose session is over, after saving what no save has yet, and removes those
 * whose session continues in another one. A session that is resumed meanwhile keeps its sandbox.
 * @returns the sessions whose sandboxes were removed
 */
export async function reapSandboxes(options: RoundOptions): Promise<string[]> {
  const { host, store, client } = options;
  const removed: string[] = [];
  const owners = await sandboxOwners(store.db, await host.sessions());
  const running = await listedAsRunning(client);
  for (const owner of owners) {
    const { id } = owner;
    // A session without a row is another installation's, or was deleted.
    if (owner.isGone && !owner.isDeleted) continue;
    await apart(options, id, async () => {
      const why = owner.isGone ? await reapDeleted(options, id) : await reap(options, owner, running);
      if (why === undefined) return;
      removed.push(id);
      options.logger.info({ session: id }, why);
    });
  }
  for (const line of await removeDeletedSetUps(store, host)) options.logger.info(line);
  for (const line of await host.removeUnused()) options.logger.info(line);
  return removed;
}

async function reapRelays({
  git,
  logger,
  store,
}: Pick<ReaperOptions, "git" | "logger" | "store">): Promise<void> {
  if (git === undefined) return;
  await removeDeletedRelays(store, git.folder);
  for (const line of await removeUnusedRepositories(git)) logger.info(line);
}

async function reapDeleted({ store, host }: RoundOptions, id: string): Promise<string | undefined> {
  return (await removeDeleted(store, host, id))
    ? "removed the sandbox of a session that was deleted"
    : undefined;
}

/** @returns why the session's sandbox was removed, if it was */
async function reap(
  options: RoundOptions,
  { id, volume, isParkedTooLong }: SandboxOwner,
  running: ReadonlySet<string>,
): Promise<string | undefined> {
  const { host, store, countedSaves, clean = String } = options;
  const isStray = (await host.volume(id)) !== volume;
  if (isStray && (await withSandboxLock(store, id, (tx) => removeStray(tx, host, id))))
    return "removed a sandbox of a session that has another one, or none yet";
  if (isParkedTooLong === true && (await withSandboxLock(store, id, (tx) => removeParked(tx, host, id))))
    return "removed a stopped sandbox whose time was over";
  if (running.has(id)) return undefined;
  const session = await endedSession(options, id);
  if (session === undefined) return undefined;
  const deps = { store, countedSaves, sandboxHost: host, taskQueues: {}, sanitizer: { clean } };
  const step = await lastUsedStep(store.db, id);
  // Its run may have kept it since the round began.
  const [now] = await sandboxOwners(store.db, [id]);
  if (now?.isParkedTooLong === false && session.status !== "cancelled") {
    // Its worker may have died before it stopped it. Under the lock: a run that goes on in it now has opened it, or does so afterwards.
    await withSandboxLock(store, id, async (tx) => {
      if (await isParkedHere(await findSandbox(tx, id), host)) await host.park?.(id);
    });
    return undefined;
  }
  await closeSandbox(deps, createSessionSandboxes(deps), session, { step });
  return "saved and removed the sandbox of a session that is over";
}

/** @returns false if the session goes on in it, or is in another one now */
async function removeParked(tx: Queryable, host: SandboxHost, id: string): Promise<boolean> {
  const [owner] = await sandboxOwners(tx, [id]);
  if (owner?.isParkedTooLong !== true) return false;
  const session = await findSession(tx, id);
  await giveUpParked(tx, host, { sessionId: id }, "when its time was over");
  if (session !== undefined)
    await appendEvents(tx, id, session.epoch, [
      {
        type: "sandbox:removed",
        step: session.reached,
        data: { container: host.nameOf?.(id) ?? id, why: "its time was over" },
      },
    ]);
  return true;
}

/**
 * Ends the rows of sessions whose run was ended from outside after their sandbox was gone, so that no sandbox leads to them.
 * Includes sessions whose hosts are gone. Then it ends the runs of sessions that are over: the stores do not agree if one of them
 * was restored from an older copy.
 */
async function endLeftSessions(options: RoundOptions): Promise<void> {
  const { store, client } = options;
  const open = await activeSessionIds(store.db);
  const running = await listedAsRunning(client);
  for (const id of open)
    if (!running.has(id)) await apart(options, id, async () => void (await endedSession(options, id)));
  for (const id of await endedSessionIds(store.db, [...running]))
    await apart(options, id, async () => void (await cancelIfOver(options, id)));
}

/** Each is replayed by a worker if it is not in its cache. Chosen by judgement: it bounds the replays of a round. */
const MAX_ASKED = 50;
/** Of those that did not answer an earlier round. Chosen by judgement: each may take its whole time limit. */
const MAX_SILENT = 5;

/**
 * Has questions stored again that runs wait for and Postgres lacks, as after a restore from an older copy. Each standstill of a session
 * is looked at once; a run that does not answer, as while no worker has room for it, is asked again in later rounds, a few in each.
 */
export function createQuestionLook(): (
  options: Pick<RoundOptions, "client" | "store" | "logger">,
) => Promise<void> {
  const seen = new Map<string, number>();
  /** In the order in which they are asked again. */
  const silent = new Set<string>();
  return async (options) => {
    const { client, store } = options;
    const { db } = store;
    const quiet = await quietSessions(db, [...(await listedAsRunning(client))]);
    const still = new Map(quiet.map(({ id, seq }) => [id, seq]));
    for (const id of seen.keys()) if (!still.has(id)) seen.delete(id);
    for (const id of silent) if (!still.has(id)) silent.delete(id);
    const isUnseen = ({ id, seq }: { id: string; seq: number }) => !silent.has(id) && seen.get(id) !== seq;
    const unseen = quiet.filter(isUnseen).map(({ id }) => id);
    for (const id of [...unseen.slice(0, MAX_ASKED), ...[...silent].slice(0, MAX_SILENT)])
      await apart(options, id, async () => {
        silent.delete(id);
        seen.set(id, still.get(id) ?? 0);
        const end = await askAgainIfGone({ db, client }, id);
        if (end === "silent") silent.add(id);
        if (end === "asked")
          options.logger.warn(
            { session: id },
            "asked again: Postgres lacks the question that the session waits for",
          );
      });
  };
}

/** A failure with one session is logged, retried in the next round, and delays no other session. */
async function apart(
  { logger }: Pick<ReaperOptions, "logger">,
  session: string,
  check: () => Promise<void>,
): Promise<void> {
  try {
    await check();
  } catch (error) {
    const reason = reasonOf(error);
    logger.warn(
      { session, reason },
      "a session was not cleaned up; its sandbox is kept until the next round",
    );
  }
}
