/** Guidance enters the transcript here and nowhere else: at a step boundary, as one user message. */
import { coalesce } from "./context/coalesce.ts";
import { estimateMessage } from "./context/tokens.ts";
import type { Message, UserPart } from "./context/message.ts";
import type { Guidance, ModelStepInput } from "./contract.ts";
import type { TextBorder } from "./context/text-border.ts";
import { takeNotice } from "./store/boxes.ts";
import { blobId, loadBlobs } from "./store/blobs.ts";
import type { Queryable, Store } from "./store/db.ts";
import { appendEvents } from "./store/events.ts";
import type { Session } from "./store/sessions.ts";
import {
  deliveredGuidance,
  insertMessage,
  markDelivered,
  parkedGuidance,
  takeSequences,
  userSlot,
} from "./store/transcript.ts";

/**
 * Stores drained messages as one, what is to be told of the box in front of them, and our own note behind them.
 * Idempotent by the messages' ids: a second attempt, and the same step after an interrupt or a compaction, find stored
 * what they bring and add only what is new. Parked messages are older, so they come first.
 */
export async function deliverGuidance(
  deps: { readonly store: Store; readonly border: TextBorder },
  session: Pick<Session, "id" | "epoch" | "boxNotice">,
  input: ModelStepInput,
): Promise<void> {
  if (input.guidance.length === 0 && !input.parked && !input.note && !session.boxNotice) return;
  const { id: sessionId, epoch } = session;
  await deps.store.db.transaction(async (tx) => {
    const notice = session.boxNotice ? await takeNotice(tx, sessionId) : undefined;
    if (notice !== undefined) {
      const message: Message = { role: "user", content: [{ type: "text", text: deps.border.clean(notice) }] };
      const sequence = await takeSequences(tx, sessionId, 1);
      // The sequence is the name: a second notice in one step is another row.
      const slot = `notice:${sequence}`;
      const tokens = estimateMessage(message);
      await insertMessage(tx, sessionId, sequence, {
        epoch,
        step: input.step,
        slot,
        kind: "notice",
        message,
        tokens,
      });
    }
    const parked = input.parked ? await parkedGuidance(tx, sessionId) : [];
    const waiting = [...parked, ...input.guidance];
    const known = await deliveredGuidance(
      tx,
      sessionId,
      waiting.map((item) => item.id),
    );
    // Parked when a run ended in the middle of the step that had delivered them.
    for (const { id } of parked) {
      const sequence = known.get(id);
      if (sequence !== undefined) await markDelivered(tx, sessionId, [id], sequence);
    }
    const unknown = waiting.filter((item) => !known.has(item.id));
    const merged = coalesce(await Promise.all(unknown.map((item) => withTexts(tx, item))));
    if (merged) {
      const content = merged.parts.map((part): UserPart =>
        part.type === "text" ? { ...part, text: deps.border.clean(part.text) } : part,
      );
      const message: Message = { role: "user", content };
      const sequence = await takeSequences(tx, sessionId, 1);
      const { ids, firstQueuedAt, lastQueuedAt } = merged;
      const row = {
        epoch,
        step: input.step,
        slot: await userSlot(tx, { sessionId, epoch }, input.step),
        kind: "guidance",
        message,
        tokens: estimateMessage(message),
        meta: { ids, firstQueuedAt, lastQueuedAt },
      } as const;
      if (await insertMessage(tx, sessionId, sequence, row)) {
        await markDelivered(
          tx,
          sessionId,
          parked.map((item) => item.id).filter((id) => !known.has(id)),
          sequence,
        );
        const text = content
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
        await appendEvents(tx, sessionId, epoch, [{ type: "message:dequeued", step: input.step, data }]);
      }
    }
    if (input.note) {
      const message: Message = { role: "user", content: [{ type: "text", text: input.note.text }] };
      const sequence = await takeSequences(tx, sessionId, 1);
      await insertMessage(tx, sessionId, sequence, {
        epoch,
        step: input.step,
        slot: input.note.kind,
        kind: input.note.kind,
        message,
        tokens: estimateMessage(message),
      });
    }
  });
}

/** A long text came as a blob, to keep Temporal's payloads small. In the transcript it is words: counted, summarised, found. */
async function withTexts(db: Queryable, item: Guidance): Promise<Guidance> {
  const isText = (part: UserPart) => part.type === "file" && part.mediaType.startsWith("text/");
  if (!item.parts.some(isText)) return item;
  const ids = item.parts.flatMap((part) =>
    part.type === "file" && isText(part) ? [blobId(part) ?? ""] : [],
  );
  const texts = await loadBlobs(db, ids);
  const parts = item.parts.map((part): UserPart => {
    const bytes = part.type === "file" && isText(part) ? texts.get(blobId(part) ?? "") : undefined;
    return bytes === undefined ? part : { type: "text", text: new TextDecoder().decode(bytes) };
  });
  return { ...item, parts };
}
