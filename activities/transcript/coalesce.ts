/** Several waiting messages become one user message (requirement 4.1). Pure: the workflow may import it. */
import type { UserPart } from "../contract/message.ts";
import { estimateMessage } from "../contract/request-size.ts";

export interface PendingMessage {
  readonly id: string;
  readonly parts: readonly UserPart[];
  /** ISO time. */
  readonly queuedAt: string;
  readonly by?: string;
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
export function coalesce(queue: readonly PendingMessage[]): Coalesced | undefined {
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

function joined(queue: readonly PendingMessage[]): readonly UserPart[] {
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
export function takenBy(
  queue: readonly PendingMessage[],
  roomTokens: number,
  taken: "nothing yet" | "some",
): number {
  let room = roomTokens;
  let count = 0;
  for (const { parts } of queue) {
    room -= LABEL_TOKENS + estimateMessage({ role: "user", content: parts });
    if (room < 0 && (count > 0 || taken === "some")) break;
    count += 1;
  }
  return count;
}
