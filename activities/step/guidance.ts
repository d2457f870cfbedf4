/** People's messages enter the queue here, and the transcript: at a step boundary, as one user message. */
import { type ActivityScope, inScope } from "../runtime/activity-scope.ts";
import { cleanDeep, cleanText } from "../text/clean.ts";
import { cutChars } from "../text/cut.ts";
import type { Viewer } from "../text/tokens.ts";
import { estimateMessage } from "../contract/request-size.ts";
import { type MessageKind, type UserPart, type FilePart, fileText } from "../contract/message.ts";
import type { ModelStepInput } from "../contract/activities.ts";
import {
  type GuidanceDelivery,
  type Guidance,
  jsonBytes,
  MAX_ID_BYTES,
  MAX_NAMED,
  namedWaiting,
  type StoredGuidance,
  type StoreGuidanceInput,
} from "../contract/guidance.ts";
import type { Sanitizer } from "../redaction/sanitizer.ts";
import { superseded } from "../contract/failures.ts";
import { blobId, loadBlobs, saveBlob, withStoredSize } from "../store/blobs.ts";
import type { Queryable, Store } from "../store/db.ts";
import { takeNotices } from "../workspace/background-commands.ts";
import { appendEvents } from "../store/events.ts";
import type { Session } from "../store/sessions.ts";
import {
  markDelivered,
  type QueuedGuidance,
  waitingGuidance,
  announceReceived,
  dropGuidance,
  knownGuidance,
  receiveGuidance,
} from "../store/guidance.ts";
import {
  hasMessage,
  insertMessage,
  stepSoFar,
  takeSequences,
  type MessageMeta,
} from "../store/transcript.ts";
import { lockRun, lockSession } from "../store/session-locks.ts";
import { detectImageType, isPdf } from "../store/media.ts";
import type { AgentDeps } from "../runtime/deps.ts";
import { claimTime, lockUnlessSuperseded } from "../store/runs.ts";

/**
 * Puts messages that a run received into the queue: cleaned, in order, and announced to watchers unless their sender did. A run that never
 * opened its session stores them too. A run whose session another run has claimed writes nothing: its messages are read from its
 * history.
 *
 * Idempotency key: (session, message id). Side effects: rows, events. Retry class: Postgres. Cancel: none needed, it is short.
 */
export function createStoreGuidance(deps: AgentDeps) {
  return (input: StoreGuidanceInput): Promise<StoredGuidance> =>
    inScope(deps, (scope) => storeMessages(deps, scope, input));
}

/**
 * Idempotent by the messages' ids.
 * @throws Superseded (fatal), with nothing stored, if a newer run has the session
 */
export async function storeMessages(
  { store, sanitizer }: Pick<AgentDeps, "store" | "sanitizer">,
  { sessionId, runId }: ActivityScope,
  { step, items }: StoreGuidanceInput,
): Promise<StoredGuidance> {
  if (items.length === 0) return {};
  const over = await store.db.transaction(async (tx) => {
    const session = await lockSession(tx, sessionId);
    if (!(await lockUnlessSuperseded(tx, sessionId, runId)))
      throw superseded("the messages wait for that one");
    const cleaned = cleanDeep(items, sanitizer.clean) as Guidance[];
    // An id that holds a secret of the worker: the sender's row of it would be another message. Other odd ids have no such row.
    for (const [index, { id }] of items.entries())
      if (id !== cleaned[index]?.id && id === cleanText(id)) await dropGuidance(tx, sessionId, id);
    const received = await receiveGuidance(tx, sessionId, cleaned);
    if (session !== undefined)
      await announceReceived(tx, { sessionId, epoch: session.epoch, step }, received, sanitizer.clean);
    const stored = await knownGuidance(
      tx,
      sessionId,
      cleaned.map(({ id }) => id),
    );
    // By place: the run knows them under the ids that it gave.
    return items.filter((_, index) => stored.get(cleaned[index]?.id ?? "") === false).map(({ id }) => id);
  });
  return over.length === 0 ? {} : { over };
}

/** How many messages one step takes: even of the shortest, no more fit. */
const MAX_MESSAGES = 500;

interface DeliveryRequest {
  readonly step: number;
  readonly note?: ModelStepInput["note"] | undefined;
  /** Ids of messages that the run knows. */
  readonly guidance?: readonly string[] | undefined;
  /** The most tokens of messages that one step takes; the rest waits, in order, for the next step. */
  readonly roomTokens: number;
}

/**
 * Stores the messages that wait as one, with the notice about the sandbox in front of them and our own note behind them.
 * Idempotent: what is delivered waits no more, so a second attempt, and the same step after an interrupt or a compaction, add only
 * messages that came since.
 * @throws Superseded (fatal), with nothing stored, if a newer run has the session
 */
export async function deliverGuidance(
  deps: { readonly store: Store; readonly sanitizer: Sanitizer },
  scope: Pick<ActivityScope, "runId">,
  session: Pick<Session, "id" | "epoch" | "sandboxNotice" | "hasCommands" | "hasWaiting" | "config">,
  { step, note, guidance = [], roomTokens }: DeliveryRequest,
): Promise<GuidanceDelivery> {
  const mayHaveNotice = session.sandboxNotice || session.hasCommands;
  if (!session.hasWaiting && !note && !mayHaveNotice) return {};
  const { id: sessionId, epoch, config: viewer } = session;
  const location: StepPlace = { sessionId, epoch, step, viewer };
  const request = { ids: guidance, runId: scope.runId, roomTokens };
  return deps.store.db.transaction(async (tx) => {
    if (!(await lockRun(tx, sessionId, scope.runId))) throw superseded("its messages wait for that one");
    if (mayHaveNotice) await addSandboxNotice(tx, deps.sanitizer, location);
    const delivery = session.hasWaiting ? await addGuidance(tx, deps.sanitizer, location, request) : {};
    if (note) await addNote(tx, location, note);
    return delivery;
  });
}

interface StepPlace {
  readonly sessionId: string;
  readonly epoch: number;
  readonly step: number;
  readonly viewer: Viewer;
}

async function addSandboxNotice(tx: Queryable, sanitizer: Sanitizer, location: StepPlace): Promise<void> {
  const notice = await takeNotices(tx, location.sessionId);
  if (notice === undefined) return;
  const content = [{ type: "text" as const, text: sanitizer.clean(notice) }];
  // The slot contains the sequence, so that a second notice in one step is another row.
  await addMessage(tx, location, { slot: (sequence) => `notice:${sequence}`, kind: "notice", content });
}

/** Stores the waiting messages that this step has room for. */
async function addGuidance(
  tx: Queryable,
  sanitizer: Sanitizer,
  location: StepPlace,
  request: Wanted,
): Promise<GuidanceDelivery> {
  const { sessionId, epoch, step } = location;
  const { items, texts, waiting, slot } = await takeWaiting(tx, sanitizer, location, request);
  const rest = waiting.length > 0 ? { left: namedWaiting(waiting) } : {};
  const merged = coalesce(texts);
  if (!merged) return rest;
  const { ids, firstQueuedAt, lastQueuedAt, parts } = merged;
  const by = merged.by === undefined ? {} : { by: [...merged.by] };
  const meta = { ids, firstQueuedAt, lastQueuedAt, ...by, leftSome: waiting.length > 0 ? true : undefined };
  const message = { slot: () => slot, kind: "guidance", content: parts, meta } as const;
  const { sequence, isNew } = await addMessage(tx, location, message);
  // Another attempt, which was thought dead, has delivered others meanwhile: these wait for the next step.
  if (!isNew) return { left: namedWaiting([...items, ...waiting]) };
  await markDelivered(tx, sessionId, items, sequence);
  const text = parts
    .map((part) => (part.type === "text" ? part.text : `[${part.filename ?? part.mediaType}]`))
    .join("\n");
  const data = {
    count: ids.length,
    ids: [...ids],
    coalesced: merged.coalesced,
    text: cutChars(text, 2_000),
    firstQueuedAt,
    lastQueuedAt,
    ...by,
  };
  await appendEvents(tx, sessionId, epoch, [{ type: "message:dequeued", step, data }]);
  return { taken: ids, ...rest };
}

async function addNote(
  tx: Queryable,
  location: StepPlace,
  { kind, text }: NonNullable<ModelStepInput["note"]>,
): Promise<void> {
  if (await hasMessage(tx, location, location.step, kind)) return;
  await addMessage(tx, location, { slot: () => kind, kind, content: [{ type: "text", text }] });
}

/** Which messages a step takes. */
interface Wanted {
  readonly ids: readonly string[];
  readonly runId: string;
  readonly roomTokens: number;
}

interface Taken {
  readonly items: readonly QueuedGuidance[];
  /** The same with long texts read from their blobs. */
  readonly texts: readonly Guidance[];
  /** Messages that wait for a later step, the oldest of them. */
  readonly waiting: readonly Guidance[];
  readonly slot: string;
}

/** Chooses the waiting messages that this step delivers: no more than there is room for. */
async function takeWaiting(
  tx: Queryable,
  sanitizer: Sanitizer,
  { sessionId, epoch, step }: StepPlace,
  { ids, runId, roomTokens }: Wanted,
): Promise<Taken> {
  // Locked first: another attempt that delivers some at this moment is waited for.
  const all = await waitingGuidance(tx, sessionId, MAX_MESSAGES + MAX_NAMED, "lock");
  // What this run has received and does not name came after it had asked: a second attempt of a step takes no more than the first.
  const cleanedIds = new Set(ids.map(sanitizer.clean));
  const since = (await claimTime(tx, sessionId, runId)) ?? new Date();
  const rows = all.filter(({ id, received, dueAt }) => cleanedIds.has(id) || !received || dueAt < since);
  // What a run received is clean. What only its sender has cleaned may hold secrets of the worker.
  const waiting = rows.map((row) =>
    row.received ? row : (cleanDeep(row, sanitizer.clean) as QueuedGuidance),
  );
  const before = await stepSoFar(tx, { sessionId, epoch }, step);
  // If this step left messages behind before, they wait for the next step, and later messages wait behind them. An answered step
  // takes no more.
  if (before.isAnswered || before.isFull) return { items: [], texts: [], waiting, slot: before.slot };
  let bytes = 0;
  const end = waiting.findIndex(({ id }) => (bytes += jsonBytes(id) + 3) > MAX_ID_BYTES);
  const most = Math.min(MAX_MESSAGES, end === -1 ? waiting.length : end);
  const texts: Guidance[] = [];
  for (const item of waiting.slice(0, most)) texts.push(await withTexts(tx, sanitizer, item));
  const count = takenBy(texts, roomTokens - before.tokens, before.tokens > 0 ? "some" : "nothing yet");
  return {
    items: waiting.slice(0, count),
    texts: texts.slice(0, count),
    waiting: waiting.slice(count),
    slot: before.slot,
  };
}

/**
 * Replaces blobs of long texts, which travel in this form, by the texts themselves, so that their tokens count.
 * Files that came inside a message are stored as blobs.
 */
async function withTexts(tx: Queryable, sanitizer: Sanitizer, item: Guidance): Promise<Guidance> {
  const parts: UserPart[] = [];
  for (const part of item.parts) {
    const id = part.type === "file" && part.mediaType.startsWith("text/") ? blobId(part) : undefined;
    const bytes = id === undefined ? undefined : (await loadBlobs(tx, [id])).get(id);
    if (bytes !== undefined)
      parts.push({ type: "text", text: sanitizer.clean(new TextDecoder().decode(bytes)) });
    else if (part.type === "text") parts.push(part);
    else parts.push(cleanDeep(await storeFile(tx, part), sanitizer.clean) as UserPart);
  }
  return { ...item, parts };
}

interface AddedMessage {
  readonly slot: (sequence: number) => string;
  readonly kind: MessageKind;
  readonly content: readonly UserPart[];
  readonly meta?: MessageMeta;
}

/** @returns the message's sequence, and whether it was stored only now */
async function addMessage(
  tx: Queryable,
  { sessionId, epoch, step, viewer }: StepPlace,
  { slot, kind, content, meta }: AddedMessage,
): Promise<{ sequence: number; isNew: boolean }> {
  const message = { role: "user", content } as const;
  const sequence = await takeSequences(tx, sessionId, 1);
  const isNew = await insertMessage(tx, sessionId, sequence, {
    epoch,
    step,
    slot: slot(sequence),
    kind,
    message,
    tokens: estimateMessage(message, viewer),
    meta,
  });
  return { sequence, isNew };
}

/** @returns a reference to the stored blob, the text of a text file, or a text that says why the file was not stored */
async function storeFile(db: Queryable, part: FilePart): Promise<UserPart> {
  const id = blobId(part);
  if (id !== undefined) {
    const stored = await withStoredSize(db, part);
    return stored ?? notTaken(part, "it names a stored file that does not exist");
  }
  const bytes = bytesOf(part.data);
  if (bytes === undefined) {
    const isLink = /^\w+:\/\//.test(part.data);
    return notTaken(part, isLink ? "links are not fetched" : "its data is not base64");
  }
  if (part.mediaType.startsWith("text/")) {
    const text = new TextDecoder().decode(bytes);
    return { type: "text", text: part.filename === undefined ? text : fileText(part.filename, text) };
  }
  // The declared type does not count: a provider refuses the whole request if an image's bytes are not an image.
  const imageType = detectImageType(bytes) ?? (isPdf(bytes) ? "application/pdf" : undefined);
  if (imageType === undefined && /^image\/|^application\/pdf$/.test(part.mediaType))
    return notTaken(part, "its content is not a PNG, JPEG, GIF, WebP or PDF");
  return saveBlob(db, bytes, imageType ?? part.mediaType, part.filename);
}

/** @returns undefined for data that is neither base64 nor a base64 data URL */
function bytesOf(data: string): Uint8Array | undefined {
  const base64 = data.replace(/^data:[^,]{0,300};base64,/, "").replace(/\s+/g, "");
  if (base64 === "" || !/^[A-Za-z0-9+/_-]+={0,2}$/.test(base64)) return undefined;
  return Buffer.from(base64, "base64");
}

function notTaken({ filename, mediaType }: FilePart, why: string): UserPart {
  const name = filename === undefined ? "A file" : `The file ${JSON.stringify(filename)}`;
  return {
    type: "text",
    text: `[${name} (${mediaType}) came with this message and was left out: ${why}. It can be sent with \`longhaul say --file\`, or put in the workspace.]`,
  };
}

export interface Coalesced {
  readonly parts: readonly UserPart[];
  /** In the order of arrival. */
  readonly ids: readonly string[];
  readonly firstQueuedAt: string;
  readonly lastQueuedAt: string;
  /** Who said them, each name once; absent if no one is named. */
  readonly by?: readonly string[];
  /** True if several messages became one. */
  readonly coalesced: boolean;
}

/**
 * All waiting messages as one, oldest first: a single one as it is; two as `First:` and `Also:`; more as `[1]:`, `[2]:` ….
 * Parts keep their order; each message's label precedes its first part.
 * @returns undefined if nothing waits
 */
export function coalesce(queue: readonly Guidance[]): Coalesced | undefined {
  const first = queue[0];
  const last = queue.at(-1);
  if (first === undefined || last === undefined) return undefined;
  const by = [...new Set(queue.flatMap((message) => message.by ?? []))];
  return {
    parts: queue.length === 1 ? first.parts : joined(queue),
    ids: queue.map((message) => message.id),
    firstQueuedAt: first.queuedAt,
    lastQueuedAt: last.queuedAt,
    coalesced: queue.length > 1,
    by: by.length === 0 ? undefined : by,
  };
}

function joined(queue: readonly Guidance[]): readonly UserPart[] {
  const parts: UserPart[] = [];
  for (const [index, message] of queue.entries()) {
    const label = labelOf(index, queue.length);
    const [head, ...rest] = message.parts;
    if (head?.type === "text") addText(parts, `${label} ${head.text}`);
    else {
      addText(parts, label);
      if (head !== undefined) parts.push(head);
    }
    parts.push(...rest);
  }
  return parts;
}

function labelOf(index: number, count: number): string {
  if (count === 2) return index === 0 ? "First:" : "Also:";
  return `[${index + 1}]:`;
}

// Neighbouring texts become one, so that plain messages make one plain message.
function addText(parts: UserPart[], text: string): void {
  const last = parts.at(-1);
  if (last?.type === "text" && last.providerOptions === undefined) {
    parts[parts.length - 1] = { type: "text", text: `${last.text}\n\n${text}` };
  } else {
    parts.push({ type: "text", text });
  }
}

/** What a label and the blank lines around a message cost, in tokens. */
const LABEL_TOKENS = 6;

/**
 * How many of the waiting messages one step takes, oldest first: as many as `roomTokens` holds, so that a burst cannot
 * overflow a request; the rest waits. If nothing was taken before, one is taken however large it is.
 */
function takenBy(queue: readonly Guidance[], roomTokens: number, before: "nothing yet" | "some"): number {
  let room = roomTokens;
  let count = 0;
  for (const { parts } of queue) {
    room -= LABEL_TOKENS + estimateMessage({ role: "user", content: parts });
    if (room < 0 && (count > 0 || before === "some")) break;
    count += 1;
  }
  return count;
}
