/** What the workflow and the activities exchange about a call of `wait`. */
import type { ToolFacts } from "./calls.ts";

export interface BeginWaitInput {
  readonly step: number;
  /** Index of the call within its step, from 0. */
  readonly index: number;
  /** The workflow's time, in ms since 1970: the server's clock, whatever the worker's says. */
  readonly nowMs: number;
  /** Waits that this run has begun before. */
  readonly waits: number;
}

export type BegunWait =
  /** The call has its result: it was refused, what it waits for is there already, or it had ended before. */
  | { readonly kind: "settled"; readonly facts: ToolFacts }
  | {
      readonly kind: "waits";
      readonly startedAtMs: number;
      /** Its latest end, in ms since 1970; absent if only a person ends it. */
      readonly untilMs?: number;
      /** It ends when a background command does. */
      readonly forProcess?: true;
      /** The question that it waits for. */
      readonly question?: string;
    };

/** What ends a wait, in the order in which one counts if several come at once. */
const WAIT_ENDS = [
  "cancelled",
  "deadline",
  "interrupted",
  "message",
  "answer",
  "process",
  "woken",
  "time",
] as const;
export type WaitEnd = (typeof WAIT_ENDS)[number];

export interface EndWaitInput extends Pick<BeginWaitInput, "step" | "index" | "nowMs"> {
  readonly how: WaitEnd;
}
