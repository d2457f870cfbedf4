/** The dependencies that activities are given once, when the worker starts. Tests pass fakes for the ports. */
import { fatal } from "../contract/failures.ts";
import type { RunConfig } from "../config/agent-config.ts";
import type { DiskLimit } from "../config/setting-values.ts";
import type { KeyRing } from "../config/key-settings.ts";
import type { OperatorPolicy } from "../config/operator-policy.ts";
import type { GitAccess } from "../git/git-access.ts";
import type { WebNetwork } from "../web/fetch-page.ts";
import type { Mcp } from "../mcp/mcp.ts";
import type { Sanitizer } from "../redaction/sanitizer.ts";
import type { Model } from "../model/model.ts";
import type { SandboxHost } from "../sandbox/sandbox-host.ts";
import type { SessionRuns } from "../contract/session-runs.ts";
import type { Announcements } from "../store/announcements.ts";
import type { CountedSaves } from "./counted-saves.ts";
import type { Suspects } from "./lost-attempts.ts";
import type { Store } from "../store/db.ts";
import type { Telemetry } from "./telemetry/telemetry.ts";
import type { OwnTools } from "../tools/own/own-tools.ts";
import type { ToolRegistry } from "../tools/index.ts";
import type { FollowNotice } from "../contract/follow.ts";
import type { NotifyInput } from "../contract/questions.ts";

export interface AgentDeps {
  readonly store: Store;
  /** Announcements of other processes. */
  readonly announcements: Announcements;
  /** This worker's attempts and saves that may end it. */
  readonly suspects: Suspects;
  readonly countedSaves: CountedSaves;
  readonly model: Model;
  readonly sandboxHost: SandboxHost;
  /** How much bases and stopped sandboxes may take on this host; absent means any amount. */
  readonly hostDisk?: DiskLimit | undefined;
  /** What Temporal knows about a session's other runs. */
  readonly sessionRuns: SessionRuns;
  /** Cleans and masks whatever enters the model, Postgres, Temporal or a log. */
  readonly sanitizer: Sanitizer;
  readonly tools: ToolRegistry;
  /** The operator's own tools (LONGHAUL_TOOLS); absent if there are none. */
  readonly ownTools?: OwnTools | undefined;
  /** MCP servers; absent if this worker reaches none. */
  readonly mcp?: Mcp;
  /** What pages of the web are fetched over; absent if this worker fetches none. */
  readonly web?: WebNetwork | undefined;
  /** What git may use on this worker; absent if no repository is cloned. */
  readonly git?: GitAccess;
  /** What the operator lets sessions ask for; absent means everything. */
  readonly policy?: OperatorPolicy | undefined;
  /** What sandboxes can use and not read; absent means nothing. */
  readonly keys?: KeyRing | undefined;
  /** The configuration of a session that was started from Temporal's own tools with nothing but a task. */
  readonly defaultConfig: RunConfig | undefined;
  /** Where notices go; absent if no one wants any. */
  readonly notices?: { readonly send: SendNotice; readonly withContent: boolean } | undefined;
  /** Spans and metrics; absent if no exporter is configured. */
  readonly telemetry?: Telemetry | undefined;
  /** Called when a statement fails because the database's tables are newer than this code. */
  readonly outdated?: () => void;
  /** Only ids and codes go to Temporal: no command line, no failure message, no answer. */
  readonly idsOnly?: boolean;
  /** How often an activity reports that it is alive, in ms. A cancel that is not announced takes at most as long to arrive. */
  readonly heartbeatMs: number;
  /** How long heartbeats may be missing before the activity is given to another worker, in ms. Default 30,000. */
  readonly heartbeatTimeoutMs?: number;
  /** How often a session checks whether a delegate has ended without a report from Temporal, in ms. Default 300,000. */
  readonly delegateLookMs?: number;
  /** All intervals of followers are divided by it: for tests that play days. Default 1. */
  readonly followPace?: number;
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
export type WorkspaceDeps = Pick<
  AgentDeps,
  "store" | "countedSaves" | "sandboxHost" | "hostDisk" | "taskQueues" | "git"
> & {
  readonly sanitizer: Pick<Sanitizer, "clean">;
};

/** What is posted as JSON. Texts are left out unless the operator wants them. */
interface Notice {
  /** Each copy of a notice has the same id. */
  readonly id: string;
  readonly event: NotifyInput["event"] | FollowNotice;
  readonly session: string;
  readonly question: string | null;
  readonly kind: string | null;
  /** Of a session that has ended, or of a followed pull request. */
  readonly status: string | null;
  /** The command that a person types to answer. */
  readonly command: string;
  readonly text?: string;
  readonly options?: readonly string[] | null;
}

/** Sends a notice. @throws Error if the address does not take it */
export type SendNotice = (notice: Notice, signal: AbortSignal) => Promise<void>;

/** @throws RepositoryUnavailable (fatal) if this worker has no git */
export function accessOf({ git: access }: Pick<AgentDeps, "git">): GitAccess {
  if (access === undefined)
    throw fatal(
      "RepositoryUnavailable",
      "This worker was given no folder for repositories; another one is needed.",
    );
  return access;
}
