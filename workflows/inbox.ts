/**
 * The messages of people, as a run knows them. The queue is the table `guidance`: a message that has arrived is held only until an activity
 * has stored it, then by its id and a few facts.
 */
import { cutChars } from "../activities/text/cut.ts";
import { estimateMessage } from "../activities/contract/request-size.ts";
import {
  type Guidance,
  type GuidanceDelivery,
  type WaitingMessage,
  partsRefusal,
  guidanceBytes,
  idOf,
  jsonBytes,
  partsOf,
} from "../activities/contract/guidance.ts";

/** A waiting message, as far as the run knows it. */
export interface Queued extends WaitingMessage {
  /** Its beginning; empty if an earlier run received it. */
  readonly text: string;
  /** ISO time; empty if an earlier run received it. */
  readonly queuedAt: string;
}

export interface Inbox {
  /** Not stored yet, oldest first. */
  arrived: Guidance[];
  /** Stored and not delivered yet, oldest first. In a flood only the oldest of those that earlier runs received. */
  stored: Queued[];
  /** Recently seen client ids, oldest first. */
  seen: Set<string>;
}

/** The bytes of messages in one activity's input: far below the 64 KB guard. */
export const MAX_STORED_BYTES = 24_000;
/** Ids kept to detect duplicates; Postgres recognises older ones. */
const MAX_SEEN_IDS = 1_000;
const MAX_CARRIED_IDS = 300;
const MAX_CARRIED_ID_BYTES = 16_000;
/** An update can be refused, a signal cannot. Source: requirement 4.1. */
export const MAX_WAITING = 100;
const MAX_TEXT_CHARS = 500;

export function createInbox(arrived: readonly Guidance[], seen: readonly string[]): Inbox {
  return { arrived: [...arrived], stored: [], seen: new Set([...seen, ...arrived.map(({ id }) => id)]) };
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
  see(inbox, item.id);
  inbox.arrived.push(item);
  return true;
}

function see({ seen }: Inbox, id: string): void {
  seen.add(id);
  if (seen.size <= MAX_SEEN_IDS) return;
  const [oldest] = seen;
  if (oldest !== undefined) seen.delete(oldest);
}

/** Removes a waiting message. Its id stays known, so that it is not queued again. @returns false if it does not wait */
export function withdraw(inbox: Inbox, id: unknown): boolean {
  if (!isWaiting(inbox, id)) return false;
  inbox.arrived = inbox.arrived.filter((item) => item.id !== id);
  inbox.stored = inbox.stored.filter((item) => item.id !== id);
  return true;
}

export const isWaiting = ({ arrived, stored }: Inbox, id: unknown): boolean =>
  arrived.some((item) => item.id === id) || stored.some((item) => item.id === id);

export function waiting({ arrived, stored }: Inbox): number {
  return arrived.length + stored.length;
}

/** Of all waiting messages, oldest first. */
export const waitingIds = ({ arrived, stored }: Inbox): string[] =>
  [...stored, ...arrived].map(({ id }) => id);

/** The oldest messages that are not stored yet, as many as one activity's input may hold. */
export function nextToStore({ arrived }: Inbox): readonly Guidance[] {
  let bytes = 0;
  const end = arrived.findIndex((item) => (bytes += guidanceBytes([item])) > MAX_STORED_BYTES);
  return arrived.slice(0, end === -1 ? MAX_WAITING : Math.min(Math.max(1, end), MAX_WAITING));
}

/**
 * These are rows now.
 * @param over ids of those that were delivered or withdrawn before
 */
export function markStored(inbox: Inbox, items: readonly Guidance[], over: readonly string[] = []): void {
  const overIds = new Set(over);
  const unstored = new Set(inbox.arrived);
  // What a delivery or its sender took meanwhile is not in the list any more.
  for (const item of items)
    if (unstored.delete(item) && !overIds.has(item.id)) inbox.stored.push(toQueued(item));
  inbox.arrived = [...unstored];
}

const toQueued = ({ id, parts, queuedAt }: Guidance): Queued => ({
  id,
  tokens: estimateMessage({ role: "user", content: parts }),
  text: cutChars(
    parts
      .map((part) => (part.type === "text" ? part.text : `[${part.filename ?? part.mediaType}]`))
      .join(" "),
    MAX_TEXT_CHARS,
  ),
  queuedAt,
});

/** Adds messages of which rows tell, before those that the run knows. */
export function addOlder(inbox: Inbox, older: readonly WaitingMessage[]): void {
  const known = new Map(inbox.stored.map((item) => [item.id, item]));
  const first = older.map(({ id, tokens }) => known.get(id) ?? { id, tokens, text: "", queuedAt: "" });
  const ids = new Set(first.map(({ id }) => id));
  for (const id of ids) see(inbox, id);
  inbox.stored = [...first, ...inbox.stored.filter(({ id }) => !ids.has(id))];
}

/** Estimated tokens of the waiting messages; those whose text is stored as a blob are not known here. */
export function waitingTokens({ arrived, stored }: Inbox): number {
  const content = arrived.map(({ parts }) => estimateMessage({ role: "user", content: parts }));
  return [...content, ...stored.map(({ tokens }) => tokens)].reduce((sum, tokens) => sum + tokens, 0);
}

/** The waiting messages as people see them, oldest first. @param most how many */
export function oldestQueued({ arrived, stored }: Inbox, most: number): readonly Queued[] {
  return [...stored.slice(0, most), ...arrived.slice(0, most).map(toQueued)].slice(0, most);
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

/** Takes the oldest stored messages out, for an activity that delivers them: as many as its input may name. */
export function drain(inbox: Inbox): readonly Queued[] {
  let bytes = 0;
  const end = inbox.stored.findIndex(({ id }) => (bytes += jsonBytes(id) + 3) > MAX_CARRIED_ID_BYTES);
  const drained = end === -1 ? inbox.stored : inbox.stored.slice(0, end);
  inbox.stored = inbox.stored.slice(drained.length);
  return drained;
}

/** For the activity's input: messages that arrive later wait for the next step, also if this one is tried again. */
export const toIds = (drained: readonly Queued[]): readonly string[] | undefined =>
  drained.length === 0 ? undefined : drained.map(({ id }) => id);

/** Puts messages back that may not have been delivered. The next delivery tells. */
export function putBack(inbox: Inbox, drained: readonly Queued[]): void {
  inbox.stored.unshift(...drained);
}

/** What an activity delivered, and the oldest of what it left waiting. */
export function applyDelivery(
  inbox: Inbox,
  drained: readonly Queued[],
  { taken = [], left = [] }: GuidanceDelivery,
): void {
  const takenIds = new Set(taken);
  for (const id of takenIds) see(inbox, id);
  const stays = ({ id }: { readonly id: string }) => !takenIds.has(id);
  const known = new Set(left.map(({ id }) => id));
  inbox.arrived = inbox.arrived.filter(stays);
  // If messages are left, the result may not name all of them. If none is, what is not named waits no more.
  const stillQueued = drained.filter((item) => known.has(item.id) || (left.length > 0 && stays(item)));
  inbox.stored = [...stillQueued, ...inbox.stored.filter(stays)];
  addOlder(inbox, left);
}
