/** The worker's services: a list that is started in order and stopped in reverse, and one that repeats a round. */
import { reasonOf } from "../activities/contract/errors.ts";
import type { Service } from "../activities/process/service.ts";
import { withTimeout } from "../temporal/patience.ts";
import type { Logger } from "./logger.ts";

const STOP_MS = 5_000;

/** Services as one. */
export class ServiceList implements Service {
  readonly #list: readonly Service[];
  readonly #logger: Logger;
  readonly #started: Service[] = [];

  constructor(list: readonly Service[], logger: Logger) {
    this.#list = list;
    this.#logger = logger;
  }

  /** @throws what one of them throws, once those before it are stopped */
  async start(): Promise<void> {
    try {
      for (const service of this.#list) {
        await service.start();
        this.#started.unshift(service);
      }
    } catch (error) {
      await this.stop();
      throw error;
    }
  }

  /** If one of them hangs or fails, that delays neither the others nor the process. */
  async stop(): Promise<void> {
    for (const service of this.#started.splice(0))
      await withTimeout(service.stop(), STOP_MS).catch((error: unknown) =>
        this.#logger.warn({ reason: reasonOf(error) }, "not closed in time"),
      );
  }
}

/** What is open already, and is to be closed with the services. */
export const opened = (close: () => Promise<unknown>): Service => ({
  start: async () => undefined,
  stop: async () => void (await close()),
});

interface Rounds {
  /** What is done each time; the next time comes after its end. */
  readonly round: () => Promise<void>;
  /** How long to wait before the next round. */
  readonly waitMs: () => number;
  /** Whether the first round comes without a wait. */
  readonly isDueAtStart: boolean;
  /** The next round comes all the same. */
  readonly onFailure: (error: unknown) => void;
}

/** A round that is repeated until it is stopped, never two at once. */
export class Repeating implements Service {
  readonly #rounds: Rounds;
  #timer: NodeJS.Timeout | undefined;
  #underWay: Promise<void> = Promise.resolve();
  #isStopped = false;

  constructor(rounds: Rounds) {
    this.#rounds = rounds;
  }

  async start(): Promise<void> {
    if (this.#rounds.isDueAtStart) this.#run();
    else this.#wait();
  }

  /** Waits for a round under way. */
  stop(): Promise<void> {
    this.#isStopped = true;
    clearTimeout(this.#timer);
    return this.#underWay;
  }

  #run(): void {
    const { round, onFailure } = this.#rounds;
    this.#underWay = round()
      .catch(onFailure)
      .then(() => this.#wait());
  }

  #wait(): void {
    if (!this.#isStopped) this.#timer = setTimeout(() => this.#run(), this.#rounds.waitMs());
  }
}
