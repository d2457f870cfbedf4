/** What the workflow decides by. A type only. */
import type { Budget } from "./budget.ts";

/** The policy of a run, fixed at its start and recorded in its history: what the workflow decides by. */
export interface RunPolicy {
  readonly model: string;
  readonly maxSteps: number;
  readonly budget: Budget;
  /** When old tool results are hidden. Histories from before there was a choice have none: they go by `always`. */
  readonly prune?: "auto" | "always" | "never";
  /** Estimated tokens of the prefix before the messages, for people. */
  readonly prefix?: { readonly system: number; readonly tools: number };
  /** False if nothing is summarised except on a person's request. Absent means true. */
  readonly autoCompaction?: boolean;
  /**
   * Rounds by the trigger that may follow each other with one step between before they pause: they gain nothing. Histories
   * from before there was such a breaker have none, and their rounds never pause.
   */
  readonly maxFutileRounds?: number;
  /** Continue as new past this many events, whatever the server suggests. */
  readonly maxHistoryEvents: number;
  readonly modelTimeoutMs: number;
  /** How long an activity's heartbeats may stay away; absent means 30 s. */
  readonly heartbeatTimeoutMs?: number;
  /** Longest a tool call may take, with its grace. */
  readonly toolTimeoutMs: number;
  readonly searchAttributes: boolean;
  /** Task queues by role; absent means the workflow's own. */
  readonly taskQueues: { readonly models?: string; readonly admin?: string };
  /** How many models may step in for the session's own; absent means none. */
  readonly fallbacks?: number;
  /** How long one of them works before the session's own model is asked again, in ms. */
  readonly returnAfterMs?: number;
  /** USD that the session may cost; absent means no limit. */
  readonly maxCostUsd?: number;
  /** At the limits of cost and of steps a person is asked. Absent in runs that end there. */
  readonly asksAtLimit?: true;
  /** How long a run may take, and how long before that it begins to end, in ms. Absent means no deadline. */
  readonly deadlineMs?: number;
  readonly wrapUpMs?: number;
  /** An interrupt is kept until the step's boundary. Absent in runs from before it was. */
  readonly keepsInterrupt?: true;
  /** A message is announced to watchers when it comes. Absent in runs that announced it when it was delivered. */
  readonly announcesQueued?: true;
  /** Only an answer that finished with `stop` completes a task. Absent in runs from before it was so. */
  readonly needsStop?: true;
  /** Its last answer is checked by a schema. Absent if it has none. */
  readonly checksAnswer?: true;
  /** Longest that the set-up of its sandbox may take; absent if there is nothing to set up. */
  readonly setupTimeoutMs?: number;
  /** How long a sandbox is kept while only people are waited for, in ms. */
  readonly parkAfterMs?: number;
  /** A person is asked about names that the sandbox may not reach. */
  readonly asksForDomains?: true;
  /** It has MCP servers, which may want to know something of a person in the middle of a call. */
  readonly serversAsk?: true;
  /** The operator is notified of questions and of the end. */
  readonly notifies?: true;
  /** Of a session that works on a repository. Absent in all others. */
  readonly git?: {
    /** Its files are not there yet. */
    readonly fetch?: true;
    readonly branch: string;
    readonly push: "never" | "end" | "saves";
    readonly pr: "none" | "draft" | "ready";
  };
  /** Of a session that may delegate: how many at once, and how often it looks whether one has ended, in ms. */
  readonly delegates?: { readonly maxConcurrent: number; readonly lookMs: number };
  /**
   * The tools of MCP servers are taken with the next step, `sandbox` of those that run there too: it waits for the sandbox. False
   * once they are. Absent in runs from before there were any.
   */
  readonly takesTools?: "worker" | "sandbox" | false;
  /** The run's trace, if its worker sends any. A reset run has this from the run before it: `run` tells them apart. */
  readonly trace?: { readonly id: string; readonly run: string };
  /** For whom it works: the search attribute `AgentTenant`. */
  readonly tenant?: string;
  /** Its activities all go through their queue, if priorities and turns hold, and none straight back to its worker. */
  readonly takesTurns?: true;
  /** How long a call may wait for the host that has the sandbox before the host counts as lost. */
  readonly hostTimeoutMs?: number;
}
