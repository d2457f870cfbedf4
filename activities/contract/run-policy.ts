/** What the workflow bases its decisions on, and the precedence of its tasks. */
import type { Budget } from "./budget.ts";
import type { VerifyPolicy } from "./verify.ts";

/** The policy of a run, fixed at its start and recorded in its history: what the workflow bases its decisions on. */
export interface RunPolicy {
  readonly model: string;
  readonly maxSteps: number;
  readonly budget: Budget;
  /** When old tool results are hidden: `auto` as `budget.pruneFirst` says, `each-step` after each step. */
  readonly prune: "auto" | "each-step" | "never";
  /** Estimated tokens of the prefix before the messages, for display. */
  readonly prefix?: { readonly system: number; readonly tools: number };
  /** False if only a person's request starts a compaction. Absent means true. */
  readonly autoCompaction?: boolean;
  /** Number of consecutive automatic rounds, one step apart, after which rounds pause because they gain nothing. */
  readonly maxFutileRounds: number;
  /** Continue as new after this many events, whatever the server suggests. */
  readonly maxHistoryEvents: number;
  readonly timeouts: RunTimeouts;
  readonly searchAttributes: boolean;
  /** Task queues by role; absent means the workflow's own. */
  readonly taskQueues: { readonly models?: string; readonly admin?: string };
  /** How many fallback models there are, and how long one is used before the session's own model is asked again, in ms. */
  readonly fallbacks?: { readonly count: number; readonly returnAfterMs: number };
  /** USD that the session may cost; absent means no limit. */
  readonly maxCostUsd?: number;
  /**
   * What a person may be asked besides the model's own questions: more at the cost and step limits, domains that the sandbox may not
   * reach, and what an MCP server asks in the middle of a call.
   */
  readonly asks: { readonly atLimit?: boolean; readonly forDomains?: boolean; readonly forServers?: boolean };
  /** How long a run may take, and how long before the deadline it starts to finish, in ms. Absent means no deadline. */
  readonly deadline?: { readonly afterMs: number; readonly wrapUpMs: number };
  /** The last answer is checked against a schema. Absent if the session has none. */
  readonly checksAnswer?: true;
  /** Commands decide whether the work is done. Absent if the session has none. */
  readonly verify?: VerifyPolicy;
  /** How long a sandbox is kept while the session waits only for people, in ms. */
  readonly parkAfterMs?: number;
  /** The sandbox is kept, stopped, after a run that may go on. */
  readonly parksAtEnd?: true;
  /** The operator is notified of questions and of the end. */
  readonly notifies?: true;
  /** Set for a session that works on a repository; absent in all others. */
  readonly git?: {
    /** The repository's files are not in the sandbox yet. */
    readonly fetch?: true;
    readonly branch: string;
    readonly push: "never" | "end" | "saves";
    readonly pr: "none" | "draft" | "ready";
    /** Its pull request is followed: from its opening on, or already. */
    readonly follow?: "from-opening" | "on";
    /** Its last answer is written into the pull request that it reviews. */
    readonly review?: true;
    /** It was told what is wrong with its pull request: the newest commits are brought into the sandbox first. */
    readonly refresh?: true;
  };
  /** Set for a session that may delegate: how many at once, and how often it polls for their ends, in ms. */
  readonly delegates?: { readonly maxConcurrent: number; readonly lookMs: number };
  /**
   * The tools of MCP servers are loaded with the next step; `sandbox`: some servers run there, so loading waits for
   * the sandbox. False once loaded; absent without servers.
   */
  readonly takesTools?: "worker" | "sandbox" | false;
  /** The run's trace, if its worker exports traces. A reset run inherits it from the run before: `run` distinguishes them. */
  readonly trace?: { readonly id: string; readonly run: string };
  /** The tenant that the session works for: the search attribute `AgentTenant`. */
  readonly tenant?: string;
  /** All of its activities go through their queue, if priorities and fairness apply; none goes straight back to its worker. */
  readonly takesTurns?: true;
}

/** How long activities may take, in ms. */
export interface RunTimeouts {
  readonly modelMs: number;
  /** A tool call, including its grace period. */
  readonly toolMs: number;
  /** The longest gap between an activity's heartbeats; absent means 30 s. */
  readonly heartbeatMs?: number;
  /** The set-up of the project; absent if there is nothing to set up. */
  readonly setupMs?: number;
  /** How long a call may wait for the sandbox's host before the host counts as lost. */
  readonly hostMs?: number;
}

/** Which tasks go first, in Temporal's terms: lower keys first, and equal keys take turns. */
export interface Precedence {
  /** 1 to 5; absent means 3. */
  readonly priorityKey?: number;
  /** Tasks with different keys take turns. */
  readonly fairnessKey?: string;
}

/** The precedence that a run was started with. In Temporal's messages 0 and the empty string mean unset. */
export function givenPrecedence({ priorityKey, fairnessKey }: Precedence = {}): Precedence | undefined {
  if (!priorityKey && !fairnessKey) return undefined;
  return {
    priorityKey: priorityKey || undefined,
    fairnessKey: fairnessKey || undefined,
  };
}
