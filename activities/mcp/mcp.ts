/** The port to MCP servers: listing a server's tools, calling one, and the state of a call. */
import type { McpServer } from "../config/mcp-settings.ts";
import type { McpToolEntry } from "../contract/tools.ts";
import type { Sandbox } from "../sandbox/sandbox.ts";
import type { ToolContext, ToolResult } from "../tools/tool.ts";

export interface ServerOf {
  readonly sessionId: string;
  readonly name: string;
  readonly settings: McpServer;
}

export interface ListedTools {
  /** Revision of the protocol. */
  readonly era: string;
  readonly tools: readonly McpToolEntry[];
  /** Later pages of the list did not come. */
  readonly isPartial?: true;
}

export interface McpCall {
  readonly server: ServerOf;
  /** The protocol revision in the session's catalogue. */
  readonly era: string;
  readonly entry: McpToolEntry;
  readonly input: Record<string, unknown>;
  /** May be called again when its outcome is unknown. */
  readonly isRepeatable: boolean;
  /** The state that an earlier attempt stored by `keepState`. */
  readonly state: CallState;
  /** The server's task for the call, if an earlier attempt got one. */
  readonly task: string | undefined;
  /** How its questions ended, by their ids. */
  readonly answers: ReadonlyMap<string, EndedQuestion>;
  /** Differs for each attempt at this call. */
  readonly attempt: string;
  /** The call's span in the form that the protocol passes on; absent if there is no trace. */
  readonly traceparent: string | undefined;
  /** Names the questions of a call, by their number from 1. */
  readonly questionId: (number: number) => string;
  /** Stores the state before anything is sent. @throws CallTaken (retryable) if another attempt has claimed the call */
  readonly keepState: (state: CallState, task?: string) => Promise<void>;
  /** The server's list, if it was fetched again: it may have changed. */
  readonly onListed: (listed: ListedTools) => Promise<void>;
  /** The server had forgotten the session, so a new one was opened. */
  readonly onReconnected: () => Promise<void>;
}

export interface Mcp {
  /** @throws Error in words for people; SandboxLost */
  list(server: ServerOf, sandbox: Sandbox | undefined, signal: AbortSignal): Promise<ListedTools>;
  /** A failure is a result. @throws SandboxLost, LeaveRunning */
  call(call: McpCall, context: ToolContext): Promise<ToolResult>;
  /** Asks a server over HTTP to cancel a task that is no longer needed. */
  cancelTask(server: ServerOf, task: string): Promise<void>;
  close(): Promise<void>;
}

/** A server's failure. Its message is for people and the model, and does not name the server. */
export class McpFailure extends Error {
  override readonly name = "McpFailure";
}

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

/** How a question ended, as stored in its row. */
export interface EndedQuestion {
  readonly status: string;
  readonly answer: string | null;
}

/** Questions that the server needs answered before it continues. */
export interface AskedQuestions {
  /** The server's requests unchanged, by key. */
  readonly requests: Readonly<Record<string, unknown>>;
  /** Opaque: returned unchanged with the answers. */
  readonly requestState?: string;
  readonly questions: readonly ServerQuestion[];
}

/** The state of a call in its ledger row, so that any worker can continue it. */
export interface CallState {
  /** Stored before anything is sent: `sent` over HTTP; in the sandbox, the program that receives the call. */
  readonly sent?: string;
  /** Number of the exchange that is sent next, or was sent if `sent` is set: 0, and one more with each answer. */
  readonly round: number;
  /** The server's questions: their answers go with that exchange. */
  readonly asked?: AskedQuestions;
  /** Number of questions so far; the next questions' ids continue from it. */
  readonly questions: number;
  /** Answered requests of the call's task, which the server may still list for a while. */
  readonly answered?: readonly string[];
}

const FRESH: CallState = { round: 0, questions: 0 };

/** For a call without questions, one word is stored. */
export function writeCallState(state: CallState): string {
  const { sent, asked, ...more } = state;
  if (sent !== undefined && asked === undefined && state.round === 0) return sent;
  return JSON.stringify({
    sent,
    asked,
    ...more,
  });
}

export function readCallState(stored: string | null): CallState {
  if (stored === null) return FRESH;
  return stored.startsWith("{") ? (JSON.parse(stored) as CallState) : { ...FRESH, sent: stored };
}
