/** What a person says while the agent works. Types only. */
import type { UserPart } from "./message.ts";

/** A person's message while the agent works. `id` is the sender's: the same id counts once. */
export interface Guidance {
  readonly id: string;
  readonly parts: readonly UserPart[];
  /** ISO time at which the workflow took it. */
  readonly queuedAt: string;
  /** Who said it, if the sender's client reported it. */
  readonly by?: string;
}
