/** Stores a session's files as a checkpoint: the difference to the last one, or, beyond `limits.maxSaved`, its replacement. */
import { MAX_IN_EVENT, skippedFilesNotice } from "./left-out.ts";
import { saveLimits } from "./save-limits.ts";
import { keepWorkspace, type WorkspaceBase, type WorkspaceSave } from "./workspace.ts";
import type { WorkspaceFacts } from "../contract/activities.ts";
import type { AgentDeps } from "../runtime/deps.ts";
import { retryable } from "../contract/failures.ts";
import type { Sandbox } from "../sandbox/sandbox.ts";
import { withoutLost, type SessionSandboxes } from "./session-sandbox.ts";
import {
  addNotice,
  findSandbox,
  keepLeftOut,
  markSaved,
  markUnchanged,
  type SandboxRow,
} from "../store/sandboxes.ts";
import {
  checkpointBase,
  checkpointChain,
  latestVersion,
  saveCheckpoint,
  toVersion,
  type Checkpoint,
  besidesNewest,
  removeSave,
  savedBytes,
} from "../store/checkpoints.ts";
import type { Queryable } from "../store/db.ts";
import { holdPack, type HeldPack } from "../store/stored-objects.ts";
import type { NewEvent } from "../store/event.ts";
import { appendEvents } from "../store/events.ts";
import { lockSession } from "../store/session-locks.ts";
import type { Session } from "../store/sessions.ts";
import { parseBytes } from "../config/setting-values.ts";

export const NOTHING_SAVED: WorkspaceFacts = { changed: 0, bytes: 0 };

/** Concurrent saves of one session by two workers are rare: a second attempt succeeds. */
const MAX_TRIES = 5;
/** How many names of skipped files are kept. */
const MAX_LEFT_OUT = 200;

type SaveDeps = Pick<AgentDeps, "store" | "countedSaves">;

/** Calls `saveFiles` with the sandbox that has the session's files; does nothing if this host has none. */
export async function saveSandbox(
  deps: SaveDeps,
  sandboxes: SessionSandboxes,
  session: Session,
  step: number,
): Promise<WorkspaceFacts> {
  return withoutLost(sandboxes, session.id, async () => {
    const sandbox = await sandboxes.find(session);
    return sandbox === undefined ? NOTHING_SAVED : saveFiles(deps, sandbox, session, step);
  });
}

/**
 * Stores what changed in the sandbox's files as the checkpoint of a step. Idempotent by (session, epoch, step). Writes nothing
 * if the session has another epoch or sandbox by now, or a later step is already saved: these are no longer its files.
 * @throws PoisonedSession (fatal) if too many workers were lost while they saved; SandboxUnavailable; SandboxLost
 */
export async function saveFiles(
  deps: SaveDeps,
  sandbox: Sandbox,
  session: Session,
  step: number,
): Promise<WorkspaceFacts> {
  const { db } = deps.store;
  const at = { sessionId: session.id, epoch: session.epoch, step };
  for (let tries = 0; tries < MAX_TRIES; tries += 1) {
    const checkpoints = await checkpointBase(db, at);
    const { latest } = checkpoints;
    if (latest !== undefined && latest.step > step) return NOTHING_SAVED;
    const room = await roomFor(db, session, checkpoints);
    const { base } = room;
    const facts = await deps.countedSaves.run(session.id, async () => {
      const states = await Promise.all([latest, base].map((state) => asListed(db, state, sandbox)));
      const keepSave = async (save: WorkspaceSave) => {
        const pack = save.saved && (await holdPack(db, save.saved.pack));
        if (pack !== undefined || save.skipped.length > 0)
          return db.transaction((tx) => keep(tx, { ...at, sandbox, latest, room, save, pack }));
        await markUnchanged(db, at, sandbox.identity);
        return NOTHING_SAVED;
      };
      const compared = { latest: states[0], base: base === latest ? states[0] : states[1] };
      return keepWorkspace(sandbox, { ...compared, limits: saveLimits(db) }, keepSave);
    });
    if (facts === "changed meanwhile") continue;
    return facts;
  }
  throw retryable(
    "SandboxUnavailable",
    "Another worker is saving this workspace too; the save will be retried.",
  );
}

/** A checkpoint as the sandbox lists its files: all of them, unless its workspace stands on the same base. */
async function asListed(
  db: Queryable,
  state: Checkpoint | undefined,
  { identity }: Sandbox,
): Promise<WorkspaceBase | undefined> {
  if (state === undefined || state.baseKey === (identity.base ?? null)) return state;
  // On another base, all is new.
  if (identity.base !== undefined) return undefined;
  return { ...state, manifest: (await checkpointChain(db, state.id)).manifest };
}

interface Save {
  readonly sessionId: string;
  readonly epoch: number;
  readonly step: number;
  readonly sandbox: Sandbox;
  readonly latest: Checkpoint | undefined;
  readonly room: Room;
  readonly save: WorkspaceSave;
  /** The saved files. */
  readonly pack: HeldPack | undefined;
}

async function keep(tx: Queryable, input: Save): Promise<WorkspaceFacts | "changed meanwhile"> {
  const { sessionId, epoch, step, sandbox, latest, room, save, pack } = input;
  // From here on saves are serialised, and no reset or other sandbox can intervene.
  const live = await lockSession(tx, sessionId);
  const row = await findSandbox(tx, sessionId);
  const isOurs = row?.volume === sandbox.identity.volume;
  if (live?.epoch !== epoch || !isOurs) return NOTHING_SAVED;
  if ((await latestVersion(tx, sessionId)) !== toVersion(latest)) return "changed meanwhile";
  const events: NewEvent[] = [];
  let facts = NOTHING_SAVED;
  if (save.saved && pack !== undefined) {
    const { manifest, before, whole, changed, removed } = save.saved;
    const { byteLength } = save.saved.pack;
    const { base } = room;
    const baseKey = sandbox.identity.base;
    const id = await saveCheckpoint(tx, {
      sessionId,
      epoch,
      step,
      manifest,
      pack,
      before,
      whole,
      base,
      baseKey,
    });
    facts = { changed: changed + removed, bytes: byteLength };
    events.push({ type: "sandbox:saved", step, data: { files: facts.changed, bytes: facts.bytes } });
    events.push(...(await settleRoom(tx, { sessionId, step, id, bytes: byteLength }, room)));
  }
  await markSaved(tx, sessionId, step);
  events.push(...(await reportSkipped(tx, { sessionId, step, row, save })));
  if (events.length > 0) await appendEvents(tx, sessionId, epoch, events);
  return events.length > 0 ? { ...facts } : NOTHING_SAVED;
}

/** Reports each file once: to the person by an event, to the model at the next step boundary. */
async function reportSkipped(
  tx: Queryable,
  { sessionId, step, row, save }: Pick<Save, "sessionId" | "step" | "save"> & { readonly row: SandboxRow },
): Promise<NewEvent[]> {
  const { skipped, skippedCount } = save;
  const reported = new Set(row.leftOut.map(({ path }) => path));
  const leftOut = skipped.slice(0, MAX_LEFT_OUT).map((file) => ({ ...file, path: file.path.toWellFormed() }));
  const news = leftOut.filter(({ path }) => !reported.has(path));
  if (news.length === 0 && leftOut.length === reported.size) return [];
  await keepLeftOut(tx, sessionId, leftOut);
  if (news.length === 0) return [];
  const count = news.length + skippedCount - skipped.length;
  await addNotice(tx, sessionId, skippedFilesNotice(news, count, saveLimits(tx)));
  return [{ type: "sandbox:left-out", step, data: { count, files: news.slice(0, MAX_IN_EVENT) } }];
}

/**
 * How much a session's saves may take in Postgres (`limits.maxSaved`). From then on each save replaces the one before: the
 * newest files are always kept, but a reset can no longer restore some of the steps in between.
 */
interface Room {
  /** The checkpoint that the save is the difference to. */
  readonly base: Checkpoint | undefined;
  /** The save that this one replaces. */
  readonly replaced: Checkpoint | undefined;
  readonly savedBytes: number;
  readonly maxBytes: number;
}

/** Whether there is room for one more save, which may be larger than what is left. */
async function roomFor(
  db: Queryable,
  { id, config }: Pick<Session, "id" | "config">,
  checkpoints: { readonly latest: Checkpoint | undefined; readonly base: Checkpoint | undefined },
): Promise<Room> {
  const { latest, base } = checkpoints;
  const maxBytes = parseBytes(config.limits.maxSaved);
  const room = { base, replaced: undefined, savedBytes: await savedBytes(db, id), maxBytes };
  // A step that is saved again replaces its own row anyway.
  if (room.savedBytes < maxBytes || latest === undefined || latest !== base) return room;
  const before = await besidesNewest(db, latest);
  return before === undefined ? room : { ...room, base: before.base, replaced: latest };
}

/** Removes what the save replaces; once, when the room runs out, informs the model and watchers. */
async function settleRoom(
  tx: Queryable,
  save: { readonly sessionId: string; readonly step: number; readonly id: number; readonly bytes: number },
  { replaced, savedBytes: before, maxBytes }: Room,
): Promise<NewEvent[]> {
  if (replaced !== undefined) await removeSave(tx, replaced, save.id);
  const bytes = before + save.bytes;
  if (replaced !== undefined || before >= maxBytes || bytes < maxBytes) return [];
  await addNotice(tx, save.sessionId, fullNotice(maxBytes));
  return [{ type: "sandbox:saves-full", step: save.step, data: { bytes, maxBytes } }];
}

function fullNotice(maxBytes: number): string {
  return `[The saves of this workspace take ${Math.round(maxBytes / 2 ** 20)} MiB, which is the limit of a session. From now on only the newest files are saved, and single steps can no longer be restored. Put files that can be made again, such as build output and downloads, into /tmp.]`;
}
