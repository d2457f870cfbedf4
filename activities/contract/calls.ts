/** What the workflow and the activities exchange about one call: of a tool, of a delegate, and how far a running one is. */
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
  /** The call has started a command in the background. */
  readonly background?: true;
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

export interface OpenDelegateInput {
  readonly step: number;
  /** Index of the call within its step, from 0. */
  readonly index: number;
}

export type OpenedDelegate =
  | { readonly kind: "open"; readonly child: string; readonly access: "read" | "write" }
  /** The call already has its result: it was refused, or had ended before. */
  | { readonly kind: "settled"; readonly facts: ToolFacts };

export interface SettleDelegateInput extends OpenDelegateInput {
  /** The delegate's session. */
  readonly child: string;
  /** How the delegate's workflow closed, if the parent saw that; if absent, read its state. */
  readonly closed?: DelegateEnd;
  /** The person stopped the parent's step, and the delegate with it. */
  readonly stopped?: "interrupt" | "cancel";
  /** As in `ModelStepInput`: the result must fit that model's window. */
  readonly fallback?: number;
}

/** `not-started`: its workflow never began. */
export type DelegateEnd = "completed" | "failed" | "cancelled" | "terminated" | "not-started";

export type SettledDelegate =
  | { readonly kind: "settled"; readonly facts: ToolFacts }
  | { readonly kind: "running" }
  /** It ended because its parent had gone back to before the call, and now the parent has come back to that call. */
  | { readonly kind: "again" };

/**
 * How far a running command is, for its activity's heartbeat.
 * @param key the call's key, such as `s12c0`: step 12, its first call
 */
export function progressNote(key: string, bytes: number, lastLine: string | undefined): string {
  const size = `${bytes.toLocaleString("en-US")} bytes`;
  return [key, size, ...(lastLine === undefined ? [] : [lastLine])].join(" · ");
}

/** Parses a note: the call, and the last line if one was printed. */
export function parseProgress(note: string): { readonly key: string; readonly line: string } | undefined {
  const [, key, size, line] = /^(s\d+c\d+) · ([\d,]+ bytes)(?: · (.*))?$/s.exec(note) ?? [];
  return key === undefined || size === undefined ? undefined : { key, line: line ?? size };
}

/**
 * The last complete line of output: an incomplete line may hold half a secret, which no mask would recognise.
 * @param isBeginning whether the text starts where the output does; otherwise its first line is a partial one
 */
export function lastWholeLine(text: string, isBeginning: boolean): string | undefined {
  const lines = text.split(/[\r\n]+/).slice(isBeginning ? 0 : 1, -1);
  return lines.findLast((line) => line.trim() !== "")?.trim();
}
