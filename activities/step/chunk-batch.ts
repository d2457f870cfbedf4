/** Live pieces of all answers that a worker receives: unwatched ones are written once a second, in one statement for all. */
import { databaseErrorOf } from "../store/database-error.ts";
import type { ChunkRow, Pieces } from "../store/events.ts";

/** What a crash may take of what was said. Source: requirement 9, at most 20 commits in a step of 10 s. */
const GATHER_MS = 1_000;

/** An answer of which something waits to be written. */
export interface WaitingPieces {
  readonly at: Omit<Pieces, "chunks">;
  take(): readonly ChunkRow[];
  /** Resolves when what was taken before is written. Never rejects. */
  writing: Promise<void>;
}

export class ChunkBatch {
  readonly #append: (answers: readonly Pieces[]) => Promise<void>;
  readonly #waiting = new Set<WaitingPieces>();
  #timer: NodeJS.Timeout | undefined;

  constructor(append: (answers: readonly Pieces[]) => Promise<void>) {
    this.#append = append;
  }

  /** Writes what waits of it with the others, within a second. */
  add(answer: WaitingPieces): void {
    this.#waiting.add(answer);
    if (this.#timer !== undefined) return;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      const sessions = new Set<string>();
      // A session is written once: an attempt that was thought dead may still receive pieces at the same time as the one in charge.
      this.write(
        [...this.#waiting].filter(({ at }) => !sessions.has(at.sessionId) && sessions.add(at.sessionId)),
      );
      for (const left of this.#waiting) this.add(left);
    }, GATHER_MS);
  }

  /** Its pieces do not wait any more: they were written, or are not wanted. */
  remove(answer: WaitingPieces): void {
    this.#waiting.delete(answer);
  }

  /** Writes what waits of these now. Pieces that cannot be written are lost to watchers, not to the transcript. */
  write(answers: readonly WaitingPieces[]): void {
    for (const answer of answers) this.#waiting.delete(answer);
    const pieces = answers
      .map((answer) => ({ ...answer.at, chunks: answer.take() }))
      .filter(({ chunks }) => chunks.length > 0);
    if (pieces.length === 0) return;
    const done = Promise.all(answers.map(({ writing }) => writing))
      .then(() => this.#append(pieces))
      .catch((error: unknown) =>
        databaseErrorOf(error)?.final === true ? this.#eachAlone(pieces) : undefined,
      );
    for (const answer of answers) answer.writing = done;
  }

  /** Text that Postgres refuses costs its own session's pieces, not the others'. */
  async #eachAlone(pieces: readonly Pieces[]): Promise<void> {
    if (pieces.length > 1) await Promise.allSettled(pieces.map((one) => this.#append([one])));
  }
}
