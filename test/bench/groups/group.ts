/** A group of figures that are taken together, and how much of it is done. */
import type { BenchOptions } from "../options.ts";
import type { Stand } from "../stand/stand.ts";
import type { Figure } from "../table.ts";

export type Group = (stand: Stand, scale: Scale) => Promise<Figure[]>;
export type Scale = typeof USUAL;

const USUAL = {
  /** Alternating rounds of yardstick and agent. */
  rounds: 3,
  /** Steps of a session that is timed. */
  steps: 60,
  /** The late step that is compared with step 10. */
  lateStep: 200,
  /** Steps of the session that outgrows its history again and again. */
  manySteps: 400,
  /** How long the model of a step streams, in s, and of how many sessions at once. */
  waitingSeconds: [10, 30],
  waitingSessions: [30, 1],
  fleetRounds: 2,
  /** Steps of each session among many. */
  fleetSteps: 20,
  /** Repeats of what is done once in a while: a start, a cancel, a message. */
  repeats: 5,
};

const QUICK: Scale = {
  rounds: 2,
  steps: 30,
  lateStep: 100,
  manySteps: 160,
  waitingSeconds: [10],
  waitingSessions: [5, 1],
  fleetRounds: 1,
  fleetSteps: 15,
  repeats: 2,
};

export function scaleOf({ quick, long }: BenchOptions): Scale {
  return { ...(quick ? QUICK : USUAL), ...(long ? { lateStep: 1_000, manySteps: 5_000 } : {}) };
}
