/** What activities are given, once, when the worker starts. Tests hand in fakes for the ports. */
import type { RunConfig } from "../config/agent-config.ts";
import type { OperatorPolicy } from "../config/operator-policy.ts";
import type { GitAccess } from "../git/git-access.ts";
import type { Mcp } from "../mcp/mcp.ts";
import type { Sanitizer } from "../redaction/sanitizer.ts";
import type { Model } from "../model/model.ts";
import type { SandboxHost } from "../sandbox/sandbox-host.ts";
import type { SessionRuns } from "../contract/session-runs.ts";
import type { Announcements } from "../store/announcements.ts";
import type { Notifier } from "../store/events.ts";
import type { Store } from "../store/db.ts";
import type { Telemetry } from "./telemetry/telemetry.ts";
import type { OwnTools } from "../tools/own/own-tools.ts";
import type { ToolRegistry } from "../tools/index.ts";
import type { SendNotice } from "./notices.ts";

export interface AgentDeps {
  readonly store: Store;
  readonly notifier: Notifier;
  /** What other processes say. */
  readonly announcements: Announcements;
  readonly model: Model;
  readonly sandboxHost: SandboxHost;
  /** What Temporal knows of a session's other runs. */
  readonly sessionRuns: SessionRuns;
  /** Cleans and masks whatever enters the model, Postgres, Temporal or a log. */
  readonly sanitizer: Sanitizer;
  readonly tools: ToolRegistry;
  /** The operator's own tools (LONGHAUL_TOOLS); absent if there are none. */
  readonly ownTools?: OwnTools | undefined;
  /** MCP servers; absent if this worker reaches none. */
  readonly mcp?: Mcp;
  /** What git may use on this worker; absent if no repository is cloned. */
  readonly git?: GitAccess;
  /** What the operator lets sessions ask for; absent means everything. */
  readonly policy?: OperatorPolicy | undefined;
  /** What a session runs by that was started with a task alone, from Temporal's own tools. */
  readonly defaultConfig: RunConfig | undefined;
  /** Where notices go; absent if no one wants any. */
  readonly notices?: { readonly send: SendNotice; readonly withContent: boolean } | undefined;
  /** Spans and metrics; absent if no exporter is configured. */
  readonly telemetry?: Telemetry | undefined;
  /** Called when a statement fails because the database's tables are newer than this code. */
  readonly outdated?: () => void;
  /** Only ids and codes go to Temporal: no line of a command, no failure's words, no answer. */
  readonly idsOnly?: boolean;
  /** How often an activity reports that it is alive, in ms: also how long a cancel may take to arrive that is not announced. */
  readonly heartbeatMs: number;
  /** How long that may stay away before the activity is given to another worker, in ms. Default 30,000. */
  readonly heartbeatTimeoutMs?: number;
  /** How often a session looks whether a delegate has ended that Temporal does not report, in ms. Default 300,000. */
  readonly delegateLookMs?: number;
  /** Whether the namespace knows our search attributes: an unknown one would fail the workflow's task. */
  readonly searchAttributes: boolean;
  readonly taskQueues: {
    readonly models?: string;
    readonly admin?: string;
    /** Queue of this host's sandboxes; absent means the workflow's own. */
    readonly sandbox?: string;
    /** How long a call may wait for a host's queue before the host counts as lost. */
    readonly hostTimeoutMs?: number;
  };
}

/** What a session's workspace is opened, saved and restored with. */
export type WorkspaceDeps = Pick<AgentDeps, "store" | "notifier" | "sandboxHost" | "taskQueues">;
