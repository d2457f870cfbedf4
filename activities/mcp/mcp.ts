/** MCP servers for the agent: listing a server's tools, and calling one. */
import type { McpServer } from "../config/mcp-settings.ts";
import type { McpToolEntry } from "../contract/tools.ts";
import type { Sandbox } from "../sandbox/sandbox.ts";
import type { ToolContext, ToolResult } from "../tools/tool.ts";
import type { CallState } from "./call-state.ts";
import type { Answer } from "./elicitation.ts";

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
  readonly answers: ReadonlyMap<string, Answer>;
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
