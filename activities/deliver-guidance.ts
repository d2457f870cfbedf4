/** Guidance enters the transcript here and nowhere else: at a step boundary, as one user message. */
import { cleanDeep } from "./context/clean-deep.ts";
import { coalesce, takenBy } from "./context/coalesce.ts";
import { estimateMessage } from "./context/tokens.ts";
import type { MessageKind, UserPart } from "./context/message.ts";
import type { Guidance, ModelStepInput } from "./contract.ts";
import type { TextBorder } from "./context/text-border.ts";
import { blobId, loadBlobs } from "./store/blobs.ts";
import { takeNotice } from "./store/boxes.ts";
import type { Queryable, Store } from "./store/db.ts";
import { appendEvents } from "./store/events.ts";
import type { Session } from "./store/sessions.ts";
import {
  countParked,
  deliveredGuidance,
  markDelivered,
  parkedGuidance,
  parkGuidance,
  userSlot,
} from "./store/guidance.ts";
import { hasMessage, insertMessage, takeSequences, type MessageMeta } from "./store/transcript.ts";

/** Parked messages that are looked at for one step: of the shortest, no more would be read with profit. */
const MAX_MESSAGES = 500;

/**
 * Stores drained messages as one, what is to be told of the box in front of them, and our own note behind them.
 * Idempotent by the messages' ids: a second attempt, and the same step after an interrupt or a compaction, find stored
 * what they bring and add only what is new. Parked messages are older, so they come first.
 * @param roomTokens what one step takes of the queue, in tokens; the rest is parked, in order, for the next one
 * @returns how many messages wait for the next step
 */
export async function deliverGuidance(
  deps: { readonly store: Store; readonly border: TextBorder },
  session: Pick<Session, "id" | "epoch" | "boxNotice">,
  input: ModelStepInput,
  roomTokens: number,
): Promise<number> {
  if (input.guidance.length === 0 && !input.parked && !input.note && !session.boxNotice) return 0;
  const { id: sessionId, epoch } = session;
  const { step } = input;
  return deps.store.db.transaction(async (tx) => {
    const add = (row: AddedMessage) => addMessage(tx, { sessionId, epoch, step }, row);
    const notice = session.boxNotice ? await takeNotice(tx, sessionId) : undefined;
    if (notice !== undefined) {
      const content = [{ type: "text" as const, text: deps.border.clean(notice) }];
      // The sequence is the name: a second notice in one step is another row.
      await add({ slot: (sequence) => `notice:${sequence}`, kind: "notice", content });
    }
    const { taken, wait } = await takeWaiting(tx, deps.border, { sessionId, epoch }, input, roomTokens);
    const merged = coalesce(taken.items);
    if (merged) {
      const { ids, firstQueuedAt, lastQueuedAt, parts } = merged;
      const meta = { ids, firstQueuedAt, lastQueuedAt, ...(wait > 0 ? { leftSome: true } : {}) };
      const { sequence, isNew } = await add({
        slot: () => taken.slot,
        kind: "guidance",
        content: parts,
        meta,
      });
      // Another attempt that was not quite dead has delivered them meanwhile.
      if (!isNew) return wait;
      await markDelivered(tx, sessionId, ids, sequence);
      const text = parts
        .map((part) => (part.type === "text" ? part.text : `[${part.filename ?? part.mediaType}]`))
        .join("\n");
      const data = {
        count: ids.length,
        ids: [...ids],
        coalesced: merged.coalesced,
        text: text.slice(0, 2_000).toWellFormed(),
        firstQueuedAt,
        lastQueuedAt,
      };
      await appendEvents(tx, sessionId, epoch, [{ type: "message:dequeued", step, data }]);
    }
    if (input.note && !(await hasMessage(tx, { sessionId, epoch }, input.step, input.note.kind))) {
      const { kind, text } = input.note;
      await add({ slot: () => kind, kind, content: [{ type: "text", text }] });
    }
    return wait;
  });
}

/** What this step brings of all that waits: nothing that the transcript has, and no more than there is room for. */
async function takeWaiting(
  tx: Queryable,
  border: TextBorder,
  at: { readonly sessionId: string; readonly epoch: number },
  input: ModelStepInput,
  roomTokens: number,
): Promise<{ taken: { items: readonly Guidance[]; slot: string }; wait: number }> {
  const { sessionId } = at;
  const before = await userSlot(tx, at, input.step);
  const isAgain = before.tokens > 0;
  // A step that is taken again may have left some of what it carries behind.
  const parked = input.parked || isAgain ? await parkedGuidance(tx, sessionId, MAX_MESSAGES) : [];
  const parkedIds = new Set(parked.map((item) => item.id));
  const carried = input.guidance.filter((item) => !parkedIds.has(item.id));
  const known = await deliveredGuidance(
    tx,
    sessionId,
    [...parked, ...carried].map((item) => item.id),
  );
  // Parked when a run ended in the middle of the step that had delivered them.
  for (const { id } of parked) {
    const sequence = known.get(id);
    if (sequence !== undefined) await markDelivered(tx, sessionId, [id], sequence);
  }
  const isNew = (item: Guidance) => !known.has(item.id);
  const older = parked.filter(isNew);
  const isAll = parked.length < MAX_MESSAGES;
  // It left some behind then: they wait on, and the later ones behind them. Else what is there was said since, or was
  // parked when a run ended in the middle of the step.
  const isFull = before.isFull && older.length > 0;
  const waiting = isFull ? [] : [...older, ...(isAll ? carried.filter(isNew) : [])];
  const texts = await withTexts(tx, border, waiting);
  const count = takenBy(texts, roomTokens - before.tokens, isAgain ? "some" : "nothing yet");
  const items = texts.slice(0, count);
  const ids = new Set(items.map((item) => item.id));
  const left = carried.filter((item) => isNew(item) && !ids.has(item.id));
  await parkGuidance(tx, sessionId, cleanDeep(left, border.clean) as Guidance[]);
  const isRest = isFull || !isAll || left.length > 0 || count < waiting.length;
  // Those that are taken are still counted there: they are marked when they are stored.
  const wait = isRest
    ? (await countParked(tx, sessionId)) - items.filter(({ id }) => parkedIds.has(id)).length
    : 0;
  return { taken: { items, slot: before.slot }, wait };
}

/** Long texts come as blobs, which the workflow can carry; here they become words again, and are counted as such. */
async function withTexts(tx: Queryable, border: TextBorder, items: readonly Guidance[]): Promise<Guidance[]> {
  const isText = (part: UserPart) => part.type === "file" && part.mediaType.startsWith("text/");
  const idOf = (part: UserPart) => (part.type === "file" && isText(part) ? blobId(part) : undefined);
  const ids = items.flatMap((item) => item.parts.map(idOf)).filter((id) => id !== undefined);
  const blobs = await loadBlobs(tx, [...new Set(ids)]);
  const asText = (part: UserPart): UserPart => {
    if (part.type === "text") return { ...part, text: border.clean(part.text) };
    const bytes = blobs.get(idOf(part) ?? "");
    return bytes === undefined ? part : { type: "text", text: border.clean(new TextDecoder().decode(bytes)) };
  };
  return items.map((item) => ({ ...item, parts: item.parts.map(asText) }));
}

interface AddedMessage {
  readonly slot: (sequence: number) => string;
  readonly kind: MessageKind;
  readonly content: readonly UserPart[];
  readonly meta?: MessageMeta;
}

/** @returns its sequence, and whether it was not there yet */
async function addMessage(
  tx: Queryable,
  { sessionId, epoch, step }: { readonly sessionId: string; readonly epoch: number; readonly step: number },
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
    tokens: estimateMessage(message),
    ...(meta === undefined ? {} : { meta }),
  });
  return { sequence, isNew };
}
