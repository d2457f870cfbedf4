/** What the workflow and the activities exchange about a delegated call. Types only. */
import type { ToolFacts } from "./tool-facts.ts";

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
