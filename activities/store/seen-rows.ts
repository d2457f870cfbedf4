/**
 * Rows of views that this process has read lately, parsed. A stored message never changes, so a step reads and parses what
 * is new and no more; what changes of a row (its marks, a bill that an undone round takes away) is read every time.
 * Nothing relies on what is kept here: a worker that has not seen a session reads it whole.
 */
import type pg from "pg";
import type { StoredMessage } from "../contract/message.ts";

/** What all sessions together may take, in characters: some 60 windows of 128k tokens. */
const MAX_CHARS = 32 * 1024 * 1024;

export interface SeenRow {
  readonly message: StoredMessage;
  /** The marks that the message was last read with, as text. */
  readonly marks: string;
  /** Characters of its content. */
  readonly chars: number;
}

/** Of one session. */
export interface SeenRows {
  /** When the server began that gave them: another may lack the last rows, and give their ids again. */
  readonly serverStart: string | undefined;
  /** By the rows' ids, which one server never gives twice. */
  readonly byId: ReadonlyMap<number, SeenRow>;
}

const NOTHING: SeenRows = { serverStart: undefined, byId: new Map() };
/** Sessions in the order in which they were last read. */
const seen = new WeakMap<pg.Pool, { chars: number; readonly sessions: Map<string, SeenRows> }>();

export function seenRows(pool: pg.Pool, sessionId: string): SeenRows {
  return seen.get(pool)?.sessions.get(sessionId) ?? NOTHING;
}

/** Keeps what is in view now, and of the session nothing else. The sessions that were read longest ago make room for it. */
export function keepSeen(pool: pg.Pool, sessionId: string, rows: SeenRows, maxChars = MAX_CHARS): void {
  forgetSeen(pool, sessionId);
  const kept = seen.get(pool) ?? { chars: 0, sessions: new Map<string, SeenRows>() };
  seen.set(pool, kept);
  kept.sessions.set(sessionId, rows);
  kept.chars += charsOf(rows);
  for (const oldest of kept.sessions.keys()) {
    if (kept.chars <= maxChars) break;
    forgetSeen(pool, oldest);
  }
}

/** For a session whose run has ended here. */
export function forgetSeen(pool: pg.Pool, sessionId: string): void {
  const kept = seen.get(pool);
  if (kept === undefined) return;
  kept.chars -= charsOf(kept.sessions.get(sessionId) ?? NOTHING);
  kept.sessions.delete(sessionId);
}

function charsOf({ byId }: SeenRows): number {
  let chars = 0;
  for (const one of byId.values()) chars += one.chars;
  return chars;
}
