/** How many delegates work at once, and in which order their files are merged: the order of the calls, which replay repeats. */
import { CancellationScope } from "@temporalio/workflow";

/** A call's turn among the delegates of its step. */
export interface Turn {
  /** Resolves when each earlier call is over or is known to change no files. */
  readonly before: Promise<unknown>;
  /** Later calls need not wait for this one. */
  end(): void;
}

export class DelegateSlots {
  #open = 0;
  readonly #waiting: (() => void)[] = [];
  #last: Promise<unknown> = Promise.resolve();

  /** The results that the run's end waits for. */
  readonly #closing: Promise<unknown>[] = [];

  closeWith(ended: Promise<unknown>): void {
    this.#closing.push(ended);
    ended.catch(() => undefined);
  }

  /** Resolves when all delegates that were cancelled with the run have their results. Never rejects. */
  async closed(): Promise<void> {
    await Promise.allSettled(this.#closing);
  }

  turn(): Turn {
    const before = this.#last;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#last = Promise.all([before, promise]);
    return { before, end: resolve };
  }

  /** Waits for a free place; call `leave` once afterwards. @throws the cancellation of the scope */
  async enter(most: number): Promise<void> {
    if (this.#open < most) {
      this.#open += 1;
      return;
    }
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#waiting.push(resolve);
    try {
      await Promise.race([promise, CancellationScope.current().cancelRequested]);
    } catch (error) {
      const index = this.#waiting.indexOf(resolve);
      if (index === -1) this.leave();
      else this.#waiting.splice(index, 1);
      throw error;
    }
  }

  leave(): void {
    const next = this.#waiting.shift();
    if (next === undefined) this.#open -= 1;
    else next();
  }
}
