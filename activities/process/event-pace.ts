/**
 * How fast events of others are taken in: each costs the process, which all sessions share, some time, and a server that sends notices
 * without end would take all of it. What comes faster waits at its server. No event is dropped.
 */
import { setTimeout as sleep } from "node:timers/promises";

/** How many may come at once before any waits. Chosen: a long list of tools or a burst of progress has fewer. */
const AT_ONCE = 2_000;
/** So that a server that sends much and says little is still read. */
const LONGEST_WAIT_MS = 1_000;

export class EventPace {
  readonly #perSecond: number;
  #left = AT_ONCE;
  #atMs = performance.now();

  /** @param perSecond default: of a server's notices, at some 0.2 ms each a tenth of the process. Chosen */
  constructor(perSecond = 500) {
    this.#perSecond = perSecond;
  }

  /** @returns when more may be read after that many events; undefined: at once */
  after(events: number): Promise<void> | undefined {
    const nowMs = performance.now();
    const since = ((nowMs - this.#atMs) / 1_000) * this.#perSecond;
    const maxDebt = (LONGEST_WAIT_MS / 1_000) * this.#perSecond;
    this.#atMs = nowMs;
    this.#left = Math.max(-maxDebt, Math.min(AT_ONCE, this.#left + since) - events);
    return this.#left < 0 ? sleep((-this.#left / this.#perSecond) * 1_000) : undefined;
  }
}

const LINE_FEED = 0x0a;

/** @returns how many messages end in a piece of a program's output: each is a line */
export function messagesIn(piece: Uint8Array): number {
  let lines = 0;
  for (let at = piece.indexOf(LINE_FEED); at !== -1; at = piece.indexOf(LINE_FEED, at + 1)) lines += 1;
  return lines;
}
