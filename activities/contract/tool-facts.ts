/** What the workflow and `runTool` exchange about one call. Types only. */
import type { ToolOutcome } from "./message.ts";

export interface RunToolInput {
  readonly step: number;
  /** Index of the call within its step, from 0. */
  readonly index: number;
  /** As in `ModelStepInput`: the result must fit that model's window. */
  readonly fallback?: number;
  /**
   * For a question: it concerns not the call itself, but the domains that its command was refused, or its server's
   * question.
   */
  readonly about?: "egress" | "server";
  /** For a server's question: which one. */
  readonly question?: string;
  /** The call's activity ended without facts, as by hand in the Web UI: the call is not run, and how it ended is not known. */
  readonly isLost?: true;
}

export interface ToolFacts {
  readonly outcome: ToolOutcome;
  /** Estimated tokens of the result as the model sees it, before any ratio. */
  readonly tokens: number;
  readonly ms: number;
  /** Eight hex characters over name, input and result, for stuck detection. */
  readonly hash: string;
  /** The result is the state of a command that still runs: to look at it again is no repetition. */
  readonly isLive?: true;
  /** USD of the session and its delegates so far, after a call of `delegate` if a limit was set. */
  readonly costUsd?: number;
  /** The call was not run: a person must allow it first. */
  readonly needsApproval?: true;
  /** The call's command requested domains that are not listed, and a person must be asked about them. */
  readonly asksForDomains?: true;
  /** The call has no result yet: its MCP server must first ask a person something. */
  readonly serverAsks?: ServerAsksFacts;
}

/** The questions are in rows; `about` is for people, at most 60 characters. */
export interface ServerAsksFacts {
  readonly server: string;
  readonly questions: readonly {
    readonly id: string;
    readonly about: string;
    /** Declining this question leaves it out; declining a required one declines all. */
    readonly isOptional?: true;
  }[];
}
