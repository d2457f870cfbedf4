/**
 * Contents of messages that this process has read lately, parsed. A stored content never changes, so a step reads and
 * parses what is new and no more; what changes of a row (its marks) is read every time. Nothing relies on what is kept
 * here: a worker that has not seen a session reads it whole.
 */
import type pg from "pg";

/** What all sessions together may take, in characters: some 60 windows of 128k tokens. */
const MAX_CHARS = 32 * 1024 * 1024;

export interface SeenContent {
  readonly content: unknown;
  /** Characters of its JSON. */
  readonly chars: number;
}

export interface SeenContents {
  /** When the server began that gave them: another may lack the last rows, and give their ids again. */
  readonly serverStart: string | undefined;
  /** By the rows' ids, which one server never gives twice. */
  readonly byId: ReadonlyMap<number, SeenContent>;
}

const NOTHING: SeenContents = { serverStart: undefined, byId: new Map() };
/** Sessions in the order in which they were last read. */
const seen = new WeakMap<pg.Pool, { chars: number; readonly sessions: Map<string, SeenContents> }>();

export function seenContents(pool: pg.Pool, sessionId: string): SeenContents {
  return seen.get(pool)?.sessions.get(sessionId) ?? NOTHING;
}

/** Keeps what is in view now, and of the session nothing else. The sessions that were read longest ago make room for it. */
export function keepSeen(
  pool: pg.Pool,
  sessionId: string,
  contents: SeenContents = NOTHING,
  maxChars = MAX_CHARS,
): void {
  const kept = seen.get(pool) ?? { chars: 0, sessions: new Map<string, SeenContents>() };
  seen.set(pool, kept);
  const drop = (id: string) => {
    kept.chars -= charsOf(kept.sessions.get(id) ?? NOTHING);
    kept.sessions.delete(id);
  };
  drop(sessionId);
  kept.sessions.set(sessionId, contents);
  kept.chars += charsOf(contents);
  for (const oldest of kept.sessions.keys()) {
    if (kept.chars <= maxChars) break;
    drop(oldest);
  }
}

function charsOf({ byId }: SeenContents): number {
  let chars = 0;
  for (const one of byId.values()) chars += one.chars;
  return chars;
}
