/** The state of a call to an MCP server in its ledger row, so that any worker can continue it. Pure. */

/** One question of a server to a person: a field of a form, a form without fields, or an address to open. */
export interface ServerQuestion {
  readonly id: string;
  /** The key of the server's request that the question belongs to, and the field of its form. */
  readonly request: string;
  readonly field?: string;
  readonly text: string;
  /** At most 60 characters. */
  readonly about: string;
  /** The choices; absent if any text is an answer. */
  readonly options?: readonly string[];
  /** Declining an optional field leaves it out; declining a required one declines the form. */
  readonly isOptional?: true;
}

/** Questions that the server needs answered before it continues. */
export interface Asked {
  /** The server's requests unchanged, by key. */
  readonly requests: Readonly<Record<string, unknown>>;
  /** Opaque: returned unchanged with the answers. */
  readonly requestState?: string;
  readonly questions: readonly ServerQuestion[];
}

export interface CallState {
  /** Stored before anything is sent: `sent` over HTTP; in the sandbox, the program that receives the call. */
  readonly sent?: string;
  /** Number of the exchange that is sent next, or was sent if `sent` is set: 0, and one more with each answer. */
  readonly round: number;
  /** The server's questions: their answers go with that exchange. */
  readonly asked?: Asked;
  /** Number of questions so far; the next questions' ids continue from it. */
  readonly questions: number;
  /** Answered requests of the call's task, which the server may still list for a while. */
  readonly answered?: readonly string[];
}

const FRESH: CallState = { round: 0, questions: 0 };

/** For a call without questions, one word is stored. */
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
