/** A point at which a worker is killed: how it is reached and held from outside, and what must not happen twice. */
import type { RowHoldSpec } from "./row-holds.ts";
import type { ScriptName } from "./scripts.ts";

export interface CrashPoint {
  readonly name: string;
  readonly script: ScriptName;
  readonly hold: Hold;
  /** Requests to the model beyond those of the undisturbed run, at most; one for each attempt if more than one was lost. */
  readonly extraCalls: 0 | 1;
  /** Labels of docs/requirements.md. */
  readonly tags: string[];
}

export type Hold =
  /** At a commit; the write is then lost with the worker, or kept although its caller never learns of it. */
  | {
      readonly at: "row";
      readonly row: RowHoldSpec;
      readonly fate: "kept" | "lost";
    }
  /** The request has arrived and is unanswered or half answered. */
  | {
      readonly at: "model";
      readonly purpose: "step" | "summary";
      /** Default: any. */
      readonly step?: number;
      readonly half?: boolean;
    }
  /** The session rests, as its script says. */
  | { readonly at: "rest" };

/** Where a write to a row is held. */
export const table = (
  name: RowHoldSpec["table"],
  match: RowHoldSpec["match"],
): Omit<Extract<Hold, { at: "row" }>, "fate"> => ({ at: "row", row: { table: name, match } });

/** Both sides of one write. */
export function around(
  what: string,
  script: ScriptName,
  heldTable: ReturnType<typeof table>,
  { tags, ...extraCalls }: { readonly tags: string[]; readonly lost?: 0 | 1; readonly kept?: 0 | 1 },
): CrashPoint[] {
  const point = (name: string, fate: "kept" | "lost"): CrashPoint => ({
    name,
    script,
    hold: { ...heldTable, fate },
    extraCalls: extraCalls[fate] ?? 0,
    tags,
  });
  return [
    point(`before ${what} is committed`, "lost"),
    point(`after ${what} is committed, before anybody hears of it`, "kept"),
  ];
}
