/** The state of a call to an MCP server in its ledger row, so that any worker can continue it. Pure. */

/** One question of a server to a person: a field of a form, a form without fields, or an address to open. */
export interface ServerQuestion {
  readonly id: string;
  /** Which of the server's requests it belongs to, by its key, and which field of its form. */
  readonly request: string;
  readonly field?: string;
  readonly text: string;
  /** At most 60 characters. */
  readonly about: string;
  /** What can be chosen; absent if any words are an answer. */
  readonly options?: readonly string[];
  /** Declining it leaves the field out; declining another one declines the form. */
  readonly isOptional?: true;
}

/** The server's questions, which it needs answered to continue. */
export interface Asked {
  /** As they came, by key. */
  readonly requests: Readonly<Record<string, unknown>>;
  /** Opaque: goes back with the answers as it came. */
  readonly requestState?: string;
  readonly questions: readonly ServerQuestion[];
}

export interface CallState {
  /** Noted before anything is sent: `sent` over HTTP, in the sandbox the program that gets it. */
  readonly sent?: string;
  /** Of the exchange that is sent next, or with `sent` was: 0, and one more with each answer. */
  readonly round: number;
  /** Goes with that exchange, once it is answered. */
  readonly asked?: Asked;
  /** Questions so far, for the names of the next ones. */
  readonly questions: number;
  /** Requests of the call's task that were answered, which it may still show for a while. */
  readonly answered?: readonly string[];
}

const FRESH: CallState = { round: 0, questions: 0 };

/** Calls without questions keep one word. */
export function writeState(state: CallState): string {
  const { sent, asked, ...more } = state;
  if (sent !== undefined && asked === undefined && state.round === 0) return sent;
  return JSON.stringify({
    ...(sent === undefined ? {} : { sent }),
    ...(asked === undefined ? {} : { asked }),
    ...more,
  });
}

export function readState(kept: string | null): CallState {
  if (kept === null) return FRESH;
  return kept.startsWith("{") ? (JSON.parse(kept) as CallState) : { ...FRESH, sent: kept };
}
