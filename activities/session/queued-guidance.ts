/** Messages that wait for the next step: announced, and kept in Postgres. */
import {
  type QueuedMessage,
  type AnnounceQueuedInput,
  toExcerpt,
  type Guidance,
} from "../contract/guidance.ts";
import { inScope } from "../runtime/activity-scope.ts";
import type { AgentDeps } from "../runtime/deps.ts";
import { blobId, loadBlobs } from "../store/blobs.ts";
import type { Queryable } from "../store/db.ts";
import { announceMasked, parkGuidance } from "../store/guidance.ts";
import { lockSession } from "../store/session-locks.ts";
import { cleanDeep } from "../text/clean.ts";
import { superseded } from "../contract/failures.ts";
import { lockUnlessSuperseded } from "../store/runs.ts";

/**
 * Announces waiting messages to watchers, whichever way they came: also those typed in the Web UI, and those that came with an
 * interrupt. A run that has not entered its session, or lost it, announces nothing: a message is announced at the latest when
 * it is delivered.
 *
 * Idempotency key: (session, message id). Side effects: events. Retry class: Postgres. Cancel: none needed, it is short.
 */
export function createAnnounceQueued(deps: AgentDeps) {
  return ({ step, messages }: AnnounceQueuedInput): Promise<void> =>
    inScope(deps, async ({ sessionId, runId }) => {
      await deps.store.db.transaction(async (tx) => {
        const session = await lockSession(tx, sessionId);
        if (session?.runId !== runId) return;
        const { epoch } = session;
        await announceMasked(tx, { sessionId, epoch, step }, await cleaned(deps, tx, messages));
      });
    });
}

async function cleaned(
  { sanitizer }: Pick<AgentDeps, "sanitizer">,
  tx: Queryable,
  messages: AnnounceQueuedInput["messages"],
): Promise<QueuedMessage[]> {
  const blobOf = ({ longText }: (typeof messages)[number]) => longText && blobId(longText);
  const texts = await loadBlobs(
    tx,
    messages.map(blobOf).filter((id) => id !== undefined),
  );
  return messages.map((message) => {
    const bytes = texts.get(blobOf(message) ?? "");
    const text = bytes === undefined ? message.text : new TextDecoder().decode(bytes);
    return {
      id: sanitizer.clean(message.id),
      position: message.position,
      excerpt: toExcerpt([{ type: "text", text: sanitizer.clean(text) }]),
      by: message.by === undefined ? undefined : sanitizer.clean(message.by),
    };
  });
}

/**
 * Messages that are too many for the workflow to carry, or that its run will not read, wait in Postgres, in order. A run
 * that never opened its session keeps them too. A run whose session another run has claimed writes nothing: its messages are
 * read from its history.
 *
 * Idempotency key: (session, client id). Side effects: rows. Retry class: Postgres. Cancel: none needed, it is short.
 */
export function createParkGuidance(deps: AgentDeps) {
  return ({ items }: { items: readonly Guidance[] }): Promise<void> =>
    inScope(deps, ({ sessionId, runId }) =>
      deps.store.db.transaction(async (tx) => {
        if (!(await lockUnlessSuperseded(tx, sessionId, runId)))
          throw superseded("the messages wait for that one");
        await parkGuidance(tx, sessionId, cleanDeep(items, deps.sanitizer.clean) as Guidance[]);
      }),
    );
}
