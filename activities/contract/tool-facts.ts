/** What the workflow and `runTool` say to each other of one call. Types only. */
import type { ToolOutcome } from "./message.ts";

export interface RunToolInput {
  readonly step: number;
  /** Which of the step's calls, from 0. */
  readonly index: number;
  /** As in `ModelStepInput`: the result must fit that model's window. */
  readonly fallback?: number;
  /** Of a question: not the call itself, but the names that its command was refused, or what its server wants to know. */
  readonly about?: "egress" | "server";
  /** Of what its server wants to know: which question. */
  readonly question?: string;
}

export interface ToolFacts {
  readonly outcome: ToolOutcome;
  /** Estimated tokens of the result as the model sees it, before any ratio. */
  readonly tokens: number;
  readonly ms: number;
  /** Eight hex characters over name, input and result, for stuck detection. */
  readonly hash: string;
  /** USD of the session and its delegates by now, after a call of `delegate` if a limit was set. */
  readonly costUsd?: number;
  /** Nothing was done: a person has to allow it first. */
  readonly needsApproval?: true;
  /** Its command asked for names that are not listed, and a person must be asked about them. */
  readonly asksForDomains?: true;
  /** It has no result yet: its MCP server wants to know something of a person first. */
  readonly serverAsks?: ServerAsksFacts;
}

/** What is asked stands in rows; `about` is for people, at most 60 characters. */
export interface ServerAsksFacts {
  readonly server: string;
  readonly questions: readonly {
    readonly id: string;
    readonly about: string;
    /** Declining it leaves it out; declining another one declines all. */
    readonly isOptional?: true;
  }[];
}
