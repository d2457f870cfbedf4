/** Collects the live pieces of all answers that no one watches, and writes them once a second in one statement. */
import { databaseErrorOf } from "../store/database-error.ts";
import type { ChunkRow, Pieces } from "../store/events.ts";

/** How much of an answer, in ms, a crash may lose. Source: requirement 9, at most 20 commits in a step of 10 s. */
const GATHER_MS = 1_000;

/** An answer with pieces that wait to be written. */
export interface WaitingPieces {
  readonly at: Omit<Pieces, "chunks">;
  take(): readonly ChunkRow[];
  /** Resolves when the pieces that were taken earlier are written. Never rejects. */
  writing: Promise<void>;
}

export class ChunkBatch {
  readonly #append: (answers: readonly Pieces[]) => Promise<void>;
  readonly #waiting = new Set<WaitingPieces>();
  #timer: NodeJS.Timeout | undefined;

  constructor(append: (answers: readonly Pieces[]) => Promise<void>) {
    this.#append = append;
  }

  /** Writes the answer's waiting pieces together with the others, within a second. */
  add(answer: WaitingPieces): void {
    this.#waiting.add(answer);
    if (this.#timer !== undefined) return;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      const sessions = new Set<string>();
      // One answer per session: an attempt that was thought dead may still receive pieces beside the current attempt.
      this.write(
        [...this.#waiting].filter(({ at }) => !sessions.has(at.sessionId) && sessions.add(at.sessionId)),
      );
      for (const left of this.#waiting) this.add(left);
    }, GATHER_MS);
  }

  /** Removes an answer: its pieces were written, or are not wanted any more. */
  remove(answer: WaitingPieces): void {
    this.#waiting.delete(answer);
  }

  /** Writes the waiting pieces of these answers now. Pieces that cannot be written are lost to watchers, not to the transcript. */
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

  /** Writes each session's pieces alone, so that text that Postgres refuses does not cost other sessions theirs. */
  async #eachAlone(pieces: readonly Pieces[]): Promise<void> {
    if (pieces.length > 1) await Promise.allSettled(pieces.map((answer) => this.#append([answer])));
  }
}
