/** One connection that hears of all sessions, for any number of followers: a pool has few. */
import type { Store } from "../../activities/store/db.ts";
import { listenToAll } from "../../activities/store/events.ts";
import type { Listen } from "./follow.ts";

interface Follower {
  readonly sessionId: string;
  readonly onWake: () => void;
  readonly onLost: () => void;
}

export class SharedListener {
  readonly #store: Store;
  readonly #followers = new Set<Follower>();
  #connection: Promise<() => void> | undefined;

  constructor(store: Store) {
    this.#store = store;
  }

  /** The connection is held while somebody listens. */
  readonly listen: Listen = async (sessionId, onWake, onLost) => {
    const follower = { sessionId, onWake, onLost };
    this.#followers.add(follower);
    const connection = (this.#connection ??= this.#open());
    try {
      await connection;
    } catch (error) {
      if (this.#connection === connection) this.#connection = undefined;
      this.#followers.delete(follower);
      throw error;
    }
    return () => this.#remove(follower);
  };

  #open(): Promise<() => void> {
    const onWake = (id: string) => {
      for (const follower of this.#followers) if (follower.sessionId === id) follower.onWake();
    };
    const onLost = () => {
      // Of one that was given up nobody is to hear.
      if (this.#connection !== opened) return;
      this.#connection = undefined;
      const lost = [...this.#followers];
      this.#followers.clear();
      for (const follower of lost) follower.onLost();
    };
    const opened = listenToAll(this.#store, onWake, onLost);
    return opened;
  }

  #remove(follower: Follower): void {
    if (!this.#followers.delete(follower) || this.#followers.size > 0) return;
    const connection = this.#connection;
    this.#connection = undefined;
    // One that never came about has nothing to end.
    connection?.then((end) => end()).catch(() => undefined);
  }
}
