/** Queued messages that are not announced to watchers yet. Pure. */
import type { AnnounceQueuedInput } from "../activities/contract/guidance.ts";

export interface Unannounced {
  messages: AnnounceQueuedInput["messages"][number][];
  isBusy: boolean;
  /** The run continues in a fresh history: the step that begins it delivers them. */
  isOver: boolean;
}

export const createUnannounced = (): Unannounced => ({ messages: [], isBusy: false, isOver: false });
