/** MCP servers for the agent: listing a server's tools, and calling one. */
import type { McpServer } from "../config/mcp-settings.ts";
import type { McpToolEntry } from "../contract/mcp.ts";
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
}

export interface McpCall {
  readonly server: ServerOf;
  /** As the session's catalogue has it. */
  readonly era: string;
  readonly entry: McpToolEntry;
  readonly input: Record<string, unknown>;
  /** May be called again when nobody knows how it ended. */
  readonly isRepeatable: boolean;
  /** What `keepState` kept for an earlier attempt. */
  readonly state: string | undefined;
  /** Kept before anything is sent. */
  readonly keepState: (state: string) => Promise<void>;
  /** The server had forgotten us and was greeted again. */
  readonly onReconnected: () => Promise<void>;
}

export interface Mcp {
  /** @throws Error in words for people; SandboxLost */
  list(server: ServerOf, sandbox: Sandbox | undefined, signal: AbortSignal): Promise<ListedTools>;
  /** What goes wrong is a result. @throws SandboxLost, LeaveRunning */
  call(call: McpCall, context: ToolContext): Promise<ToolResult>;
  close(): Promise<void>;
}
