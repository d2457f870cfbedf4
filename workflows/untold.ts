/** Waiting messages that watchers are still to be told of, as the run holds them. Pure. */
import type { TellQueuedInput } from "../activities/contract/queued-message.ts";

export interface Untold {
  messages: TellQueuedInput["messages"][number][];
  isBusy: boolean;
  /** The run continues in a fresh history: the step that begins it delivers them. */
  isOver: boolean;
}

export const createUntold = (): Untold => ({ messages: [], isBusy: false, isOver: false });
