/** A group of figures that are taken together, and how much of it is done. */
import type { Stand } from "../stand/stand.ts";
import type { Figure } from "../table.ts";

export interface Scale {
  /** Alternating rounds of yardstick and agent. */
  readonly rounds: number;
  /** Steps of a session that is timed. */
  readonly steps: number;
  /** The late step that is compared with step 10. */
  readonly lateStep: number;
  /** Steps of the session that outgrows its history again and again. */
  readonly manySteps: number;
  /** Sessions at once. */
  readonly fleets: readonly number[];
  readonly fleetRounds: number;
  /** Steps of each session among many. */
  readonly fleetSteps: number;
  /** How long the model of a step streams, in s, and of how many sessions at once. */
  readonly waitingSeconds: readonly number[];
  readonly waitingSessions: readonly number[];
  /** Repeats of what is done once in a while: a start, a cancel, a message. */
  readonly repeats: number;
}

export type Group = (stand: Stand, scale: Scale) => Promise<Figure[]>;
