/** Guidance enters the transcript here and nowhere else: at a step boundary, as one user message. */
import type { ActivityScope } from "../runtime/activity-scope.ts";
import { cleanDeep } from "../text/clean.ts";
import { coalesce, takenBy } from "../transcript/coalesce.ts";
import { cutChars } from "../text/cut.ts";
import type { Viewer } from "../text/tokens.ts";
import { estimateMessage } from "../contract/request-size.ts";
import { type MessageKind, type UserPart, type FilePart, fileText } from "../contract/message.ts";
import type { DeliveredFacts, DrainedInput, ModelStepInput } from "../contract/activities.ts";
import { type Guidance, toExcerpt, type QueuedMessage } from "../contract/guidance.ts";
import type { Sanitizer } from "../redaction/sanitizer.ts";
import { superseded } from "../contract/failures.ts";
import { blobId, loadBlobs, saveBlob, withStoredSize } from "../store/blobs.ts";
import { takeNotice } from "../store/sandboxes.ts";
import type { Queryable, Store } from "../store/db.ts";
import { appendEvents } from "../store/events.ts";
import type { Session } from "../store/sessions.ts";
import {
  announceMasked,
  countParked,
  deliveredGuidance,
  keepDelivered,
  parkedGuidance,
  parkGuidance,
  stepSoFar,
} from "../store/guidance.ts";
import { hasMessage, insertMessage, takeSequences, type MessageMeta } from "../store/transcript.ts";
import { lockRun } from "../store/session-locks.ts";
import { detectImageType, isPdf } from "../store/media.ts";

/** How many parked messages are read for one step: even of the shortest messages, no more fit. */
const MAX_MESSAGES = 500;

interface GuidanceRequest {
  readonly input: Pick<ModelStepInput, "step" | "guidance" | "parked" | "note">;
  /** The most tokens of messages that one step takes; the rest is parked, in order, for the next step. */
  readonly roomTokens: number;
}

/**
 * Stores drained messages as one, with the notice about the sandbox in front of them and our own note behind them.
 * Idempotent by the messages' ids: a second attempt, and the same step after an interrupt or a compaction, add only
 * messages that are not stored yet. Parked messages are older, so they come first.
 * @returns how many messages wait for the next step
 * @throws Superseded (fatal), with nothing stored, if a newer run has the session
 */
export async function deliverGuidance(
  deps: { readonly store: Store; readonly sanitizer: Sanitizer },
  scope: Pick<ActivityScope, "runId">,
  session: Pick<Session, "id" | "epoch" | "sandboxNotice" | "hasWaiting" | "config">,
  { input, roomTokens }: GuidanceRequest,
): Promise<number> {
  const isSaid = input.guidance.length > 0 || input.parked === true || session.hasWaiting;
  if (!isSaid && !input.note && !session.sandboxNotice) return 0;
  const { id: sessionId, epoch, config: viewer } = session;
  const place: StepPlace = { sessionId, epoch, step: input.step, viewer };
  return deps.store.db.transaction(async (tx) => {
    if (!(await lockRun(tx, sessionId, scope.runId))) throw superseded("its messages wait for that one");
    if (session.sandboxNotice) await addSandboxNotice(tx, deps.sanitizer, place);
    const wait = isSaid ? await addGuidance(tx, deps.sanitizer, place, { input, roomTokens }) : 0;
    if (input.note) await addNote(tx, place, input.note);
    return wait;
  });
}

/** The same for an activity that makes the next request smaller, and measures it with these messages. @throws Superseded (fatal) */
export async function deliverDrained(
  deps: Parameters<typeof deliverGuidance>[0],
  scope: Parameters<typeof deliverGuidance>[1],
  session: Parameters<typeof deliverGuidance>[2],
  {
    step,
    drained,
    roomTokens,
  }: { readonly step: number; readonly drained: DrainedInput; readonly roomTokens: number },
): Promise<DeliveredFacts> {
  const { guidance = [], parked } = drained;
  if (guidance.length === 0 && parked !== true) return {};
  const input = { step, guidance, parked: parked === true ? parked : undefined };
  const left = await deliverGuidance(deps, scope, session, { input, roomTokens });
  return { delivered: true, parked: left > 0 ? left : undefined };
}

interface StepPlace {
  readonly sessionId: string;
  readonly epoch: number;
  readonly step: number;
  readonly viewer: Viewer;
}

async function addSandboxNotice(tx: Queryable, sanitizer: Sanitizer, place: StepPlace): Promise<void> {
  const notice = await takeNotice(tx, place.sessionId);
  if (notice === undefined) return;
  const content = [{ type: "text" as const, text: sanitizer.clean(notice) }];
  // The slot contains the sequence, so that a second notice in one step is another row.
  await addMessage(tx, place, { slot: (sequence) => `notice:${sequence}`, kind: "notice", content });
}

/** Stores the waiting messages that this step has room for. @returns how many wait for the next step */
async function addGuidance(
  tx: Queryable,
  sanitizer: Sanitizer,
  place: StepPlace,
  request: GuidanceRequest,
): Promise<number> {
  const { sessionId, epoch, step } = place;
  const { taken, left, wait } = await takeWaiting(tx, sanitizer, { sessionId, epoch }, request);
  await announceMasked(tx, { sessionId, epoch, step }, queuedOf([...taken.items, ...left]));
  const merged = coalesce(taken.items);
  if (!merged) return wait;
  const { ids, firstQueuedAt, lastQueuedAt, parts } = merged;
  const by = merged.by === undefined ? {} : { by: [...merged.by] };
  const meta = { ids, firstQueuedAt, lastQueuedAt, ...by, leftSome: wait > 0 ? true : undefined };
  const message = { slot: () => taken.slot, kind: "guidance", content: parts, meta } as const;
  const { sequence, isNew } = await addMessage(tx, place, message);
  // Another attempt, which was thought dead, has delivered them meanwhile.
  if (!isNew) return wait;
  await keepDelivered(tx, sessionId, taken.originals, sequence);
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
  return wait;
}

async function addNote(
  tx: Queryable,
  place: StepPlace,
  { kind, text }: NonNullable<ModelStepInput["note"]>,
): Promise<void> {
  if (await hasMessage(tx, place, place.step, kind)) return;
  await addMessage(tx, place, { slot: () => kind, kind, content: [{ type: "text", text }] });
}

interface Taken {
  readonly taken: {
    /** With long texts read from their blobs. */
    readonly items: readonly Guidance[];
    /** As they arrived. */
    readonly originals: readonly Guidance[];
    readonly slot: string;
  };
  /** Messages of the step's input that wait for a later step. */
  readonly left: readonly Guidance[];
  readonly wait: number;
}

/** Chooses the waiting messages that this step delivers: none that the transcript has, and no more than there is room for. */
async function takeWaiting(
  tx: Queryable,
  sanitizer: Sanitizer,
  at: { readonly sessionId: string; readonly epoch: number },
  { input, roomTokens }: GuidanceRequest,
): Promise<Taken> {
  const { sessionId } = at;
  // Messages that an older worker carried may not be clean yet. Ids and names are cleaned as well: they go to Postgres.
  const guidance = cleanDeep(input.guidance, sanitizer.clean) as Guidance[];
  const before = await stepSoFar(tx, at, input.step);
  const isAgain = before.tokens > 0;
  const parked = await parkedGuidance(tx, sessionId, MAX_MESSAGES);
  const parkedIds = new Set(parked.map((item) => item.id));
  // Each id counts once: the workflow forgets old ids, and two ids may be the same after cleaning.
  const carried = guidance.filter(
    (item, place) => !parkedIds.has(item.id) && guidance.findIndex((other) => other.id === item.id) === place,
  );
  const known = await deliveredGuidance(
    tx,
    sessionId,
    [...parked, ...carried].map((item) => item.id),
  );
  // These were parked when a run ended in the middle of the step that had delivered them.
  for (const item of parked) {
    const sequence = known.get(item.id);
    if (sequence !== undefined) await keepDelivered(tx, sessionId, [item], sequence);
  }
  const isNew = (item: Guidance) => !known.has(item.id);
  const older = parked.filter(isNew);
  const isAll = parked.length < MAX_MESSAGES;
  // If this step left messages behind before, they wait for the next step, and later messages wait behind them. Otherwise the
  // parked messages are newer, or were parked when a run ended in the middle of the step. An answered step takes no more.
  const isFull = before.isAnswered || (before.isFull && older.length > 0);
  const waiting = isFull ? [] : [...older, ...(isAll ? carried.filter(isNew) : [])];
  const texts = await withTexts(tx, sanitizer, waiting);
  const count = takenBy(texts, roomTokens - before.tokens, isAgain ? "some" : "nothing yet");
  const items = texts.slice(0, count);
  const ids = new Set(items.map((item) => item.id));
  const left = carried.filter((item) => isNew(item) && !ids.has(item.id));
  await parkGuidance(tx, sessionId, left);
  const isRest = isFull || !isAll || left.length > 0 || count < waiting.length;
  // `countParked` still counts the taken messages: they are marked only when they are stored.
  const wait = isRest
    ? (await countParked(tx, sessionId)) - items.filter(({ id }) => parkedIds.has(id)).length
    : 0;
  const originals = cleanDeep(waiting.slice(0, count), sanitizer.clean) as Guidance[];
  return { taken: { items, originals, slot: before.slot }, left, wait };
}

/** The queue as watchers see it; the pieces of one long message count as one message. */
function queuedOf(items: readonly Guidance[]): QueuedMessage[] {
  const ids = new Set(items.map(({ id }) => id));
  return items
    .filter(({ id }) => !ids.has(id.replace(/#\d+$/, "")) || !/#\d+$/.test(id))
    .map(({ id, parts, by }, index) => ({
      id,
      position: index + 1,
      excerpt: toExcerpt(parts),
      by,
    }));
}

/**
 * Replaces blobs of long texts, which the workflow carries in this form, by the texts themselves, so that their tokens count.
 * Files that came inside a message are stored as blobs.
 */
async function withTexts(
  tx: Queryable,
  sanitizer: Sanitizer,
  items: readonly Guidance[],
): Promise<Guidance[]> {
  const isText = (part: UserPart) => part.type === "file" && part.mediaType.startsWith("text/");
  const idOf = (part: UserPart) => (part.type === "file" && isText(part) ? blobId(part) : undefined);
  const ids = items.flatMap((item) => item.parts.map(idOf)).filter((id) => id !== undefined);
  const blobs = await loadBlobs(tx, [...new Set(ids)]);
  const asStored = async (part: UserPart): Promise<UserPart> => {
    if (part.type === "text") return part;
    const bytes = blobs.get(idOf(part) ?? "");
    if (bytes !== undefined) return { type: "text", text: new TextDecoder().decode(bytes) };
    return storeFile(tx, part);
  };
  const stored: Guidance[] = [];
  for (const item of items) {
    const parts: UserPart[] = [];
    for (const part of item.parts) parts.push(cleanDeep(await asStored(part), sanitizer.clean) as UserPart);
    stored.push({ ...item, parts });
  }
  return stored;
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
  const found = detectImageType(bytes) ?? (isPdf(bytes) ? "application/pdf" : undefined);
  if (found === undefined && /^image\/|^application\/pdf$/.test(part.mediaType))
    return notTaken(part, "its content is not a PNG, JPEG, GIF, WebP or PDF");
  return saveBlob(db, bytes, found ?? part.mediaType, part.filename);
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
