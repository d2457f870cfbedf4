/** The queue of guidance: accept, detect duplicates, count, drain; and which waiting messages watchers do not know yet. */
import { estimateMessage } from "../activities/contract/request-size.ts";
import {
  type Guidance,
  partsRefusal,
  guidanceBytes,
  idOf,
  jsonBytes,
  partsOf,
  type AnnounceQueuedInput,
} from "../activities/contract/guidance.ts";

export interface Inbox {
  /** Waiting, oldest first. */
  queue: Guidance[];
  /** How many wait in Postgres, before those in the queue. */
  parked: number;
  /** Recently seen client ids, oldest first. */
  seen: Set<string>;
}

/** Waiting messages of more bytes than this are parked: an activity's input stays far below the 64 KB guard. */
export const MAX_QUEUE_BYTES = 24_000;
/** Ids kept to detect duplicates; Postgres recognises older ones, if they were parked or delivered. */
const MAX_SEEN_IDS = 1_000;
const MAX_CARRIED_IDS = 300;
const MAX_CARRIED_ID_BYTES = 16_000;
/** An update can be refused, a signal cannot. Source: requirement 4.1. */
export const MAX_WAITING = 100;

export function createInbox(queue: readonly Guidance[], parked: number, seen: readonly string[]): Inbox {
  // Waiting messages may have older ids than the carried list of seen ids.
  return { queue: [...queue], parked, seen: new Set([...queue.map(({ id }) => id), ...seen]) };
}

/** Why a message is refused, as a text for its sender; undefined if it is accepted. */
export function messageRefusal(inbox: Inbox, message: unknown): string | undefined {
  const parts = partsOf(message);
  if (!parts) return 'Not a message: send {"text": "…"} or a plain string.';
  const id = idOf(message);
  if (id !== undefined && inbox.seen.has(id)) return undefined;
  if (waiting(inbox) >= MAX_WAITING)
    return `${MAX_WAITING} messages are waiting already; this one was not queued. Try again when the agent has read them.`;
  return partsRefusal(parts);
}

/** Puts a message in the queue. @returns false for an id that was seen before */
export function accept(inbox: Inbox, item: Guidance): boolean {
  if (inbox.seen.has(item.id)) return false;
  inbox.seen.add(item.id);
  if (inbox.seen.size > MAX_SEEN_IDS) {
    const [oldest] = inbox.seen;
    if (oldest !== undefined) inbox.seen.delete(oldest);
  }
  inbox.queue.push(item);
  return true;
}

/** Removes a waiting message. Its id stays known, so that it is not queued again. @returns false if it does not wait */
export function withdraw(inbox: Inbox, id: unknown): boolean {
  const place = inbox.queue.findIndex((item) => item.id === id);
  if (place !== -1) inbox.queue.splice(place, 1);
  return place !== -1;
}

export function waiting(inbox: Inbox): number {
  return inbox.queue.length + inbox.parked;
}

/** Splits a queue that is too large to carry into lists that are small enough, oldest first; undefined while the queue is small. */
export function tooMuch(inbox: Inbox): Guidance[][] | undefined {
  if (inbox.queue.length <= MAX_WAITING && guidanceBytes(inbox.queue) <= MAX_QUEUE_BYTES) return undefined;
  const lists: Guidance[][] = [];
  let bytes = 0;
  for (const item of inbox.queue) {
    const size = guidanceBytes([item]);
    const list = lists.at(-1);
    if (!list || bytes + size > MAX_QUEUE_BYTES) {
      lists.push([item]);
      bytes = size;
    } else {
      list.push(item);
      bytes += size;
    }
  }
  return lists;
}

/** Estimated tokens of the messages in the queue; those that are stored as blobs or in Postgres are not known here. */
export function waitingTokens({ queue }: Inbox): number {
  return queue.reduce((sum, { parts }) => sum + estimateMessage({ role: "user", content: parts }), 0);
}

/** The oldest messages of the queue, as many as may be shown at once. */
export function oldestGuidance({ queue }: Inbox): readonly Guidance[] {
  let bytes = 0;
  const end = queue.findIndex((item) => (bytes += guidanceBytes([item])) > MAX_QUEUE_BYTES);
  return queue.slice(0, end === -1 ? MAX_WAITING : Math.min(end, MAX_WAITING));
}

/** Recently seen ids, newest last, as many as the next run's input may hold. */
export function latestIds({ seen }: Inbox): string[] {
  let bytes = 0;
  return [...seen]
    .slice(-MAX_CARRIED_IDS)
    .toReversed()
    .filter((id) => (bytes += jsonBytes(id) + 3) <= MAX_CARRIED_ID_BYTES)
    .toReversed();
}

export interface Drained {
  readonly guidance: readonly Guidance[];
  /** Messages wait in Postgres, before those in `guidance`. */
  readonly parked: boolean;
}

/**
 * Takes the waiting messages.
 * @param guidance the queue's oldest; the rest stays. Default: all
 */
export function drain(inbox: Inbox, guidance: readonly Guidance[] = inbox.queue): Drained {
  const drained = { guidance, parked: inbox.parked > 0 };
  inbox.queue = inbox.queue.slice(guidance.length);
  inbox.parked = 0;
  return drained;
}

/** Puts messages back that may not have been delivered. Those that were are recognised by their ids. */
export function putBack(inbox: Inbox, { guidance, parked }: Drained): void {
  inbox.queue.unshift(...guidance);
  if (parked) inbox.parked = Math.max(1, inbox.parked);
}

export interface Unannounced {
  messages: AnnounceQueuedInput["messages"][number][];
  isBusy: boolean;
  /** The run continues in a fresh history: the step that begins it delivers them. */
  isOver: boolean;
}

export const createUnannounced = (): Unannounced => ({ messages: [], isBusy: false, isOver: false });
