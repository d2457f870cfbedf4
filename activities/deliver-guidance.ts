/** Guidance enters the transcript here and nowhere else: at a step boundary, as one user message. */
import { coalesce } from "./context/coalesce.ts";
import { estimateMessage } from "./context/tokens.ts";
import type { Message, UserPart } from "./context/message.ts";
import type { ModelStepInput } from "./contract.ts";
import type { TextBorder } from "./context/text-border.ts";
import type { Store } from "./store/db.ts";
import { appendEvents } from "./store/events.ts";
import { insertMessage, markDelivered, parkedGuidance, takeSequences } from "./store/transcript.ts";

/**
 * Stores drained messages as one, and our own note behind them. Idempotent: a second attempt finds them stored.
 * Parked messages are older, so they come first.
 */
export async function deliverGuidance(
  deps: { readonly store: Store; readonly border: TextBorder },
  at: { readonly sessionId: string; readonly epoch: number },
  input: ModelStepInput,
): Promise<void> {
  if (input.guidance.length === 0 && !input.parked && !input.note) return;
  const { sessionId, epoch } = at;
  await deps.store.db.transaction(async (tx) => {
    const parked = input.parked ? await parkedGuidance(tx, sessionId) : [];
    const merged = coalesce([...parked, ...input.guidance]);
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
        slot: "user",
        kind: "guidance",
        message,
        tokens: estimateMessage(message),
        meta: { ids, firstQueuedAt, lastQueuedAt },
      } as const;
      if (await insertMessage(tx, sessionId, sequence, row)) {
        await markDelivered(
          tx,
          sessionId,
          parked.map((item) => item.id),
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
