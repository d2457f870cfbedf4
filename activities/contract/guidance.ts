/** Messages from a person while the agent works. Types only. */
import type { UserPart } from "./message.ts";

/** A person's message while the agent works. `id` is the sender's: repeated ids are ignored. */
export interface Guidance {
  readonly id: string;
  readonly parts: readonly UserPart[];
  /** ISO time at which the workflow received it. */
  readonly queuedAt: string;
  /** Who sent it, if the sender's client reported that. */
  readonly by?: string;
}
