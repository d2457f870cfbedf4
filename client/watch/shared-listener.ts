/** One connection that listens for many sessions and any number of followers, because a pool has few connections. */
import type { Store } from "../../activities/store/db.ts";
import { openListener, type Listener } from "../../activities/store/announcements.ts";
import type { Listen } from "./follow.ts";

interface Follower {
  readonly sessionId: string;
  readonly onWake: () => void;
  readonly onLost: () => void;
}

export class SharedListener {
  readonly #store: Store;
  readonly #followers = new Set<Follower>();
  /** Subscriptions by session, while it has followers. */
  readonly #watched = new Map<string, Promise<void>>();
  #connection: Promise<Listener> | undefined;

  constructor(store: Store) {
    this.#store = store;
  }

  /** Holds the connection while there are followers. */
  readonly listen: Listen = async (sessionId, onWake, onLost) => {
    const follower = { sessionId, onWake, onLost };
    this.#followers.add(follower);
    try {
      await (this.#watched.get(sessionId) ?? this.#watch(sessionId));
    } catch (error) {
      this.#remove(follower);
      throw error;
    }
    return () => this.#remove(follower);
  };

  #watch(sessionId: string): Promise<void> {
    const onWake = () => {
      for (const follower of this.#of(sessionId)) follower.onWake();
    };
    const connection = (this.#connection ??= this.#open());
    const watched = connection.then((listener) => listener.watch(sessionId, onWake));
    this.#watched.set(sessionId, watched);
    return watched;
  }

  #of(sessionId: string): Follower[] {
    return [...this.#followers].filter((follower) => follower.sessionId === sessionId);
  }

  #open(): Promise<Listener> {
    const onLost = () => {
      // An abandoned connection must notify no one.
      if (this.#connection !== opened) return;
      this.#connection = undefined;
      this.#watched.clear();
      const lost = [...this.#followers];
      this.#followers.clear();
      for (const follower of lost) follower.onLost();
    };
    const opened = openListener(this.#store, onLost);
    return opened;
  }

  #remove(follower: Follower): void {
    const { sessionId } = follower;
    if (!this.#followers.delete(follower) || this.#of(sessionId).length > 0) return;
    this.#watched.delete(sessionId);
    const connection = this.#connection;
    const isLast = this.#followers.size === 0;
    if (isLast) this.#connection = undefined;
    connection
      ?.then((listener) => (isLast ? listener.end() : listener.unwatch(sessionId)))
      // A connection that was never established has nothing to end.
      .catch(() => undefined);
  }
}
