/** Publishes an answer's pieces while they arrive; those that no one watches are written once a second, for all answers in one statement. */
import type { Sanitizer } from "../redaction/sanitizer.ts";
import type { Store } from "../store/db.ts";
import type { Announcements } from "../store/announcements.ts";
import { appendEvents, type ChunkRow, type Pieces } from "../store/events.ts";
import type { ModelDelta } from "../model/model.ts";
import { databaseErrorOf } from "../store/database-error.ts";

/**
 * Least time between two writes while someone watches. Chosen: durable engines take 50 to 100 ms; watchers should see a
 * piece within 300 ms.
 */
export const WATCHED_MS = 60;
/** Pieces come gathered; those that come together are written together. Chosen: a turn or two of a busy event loop. */
const TOGETHER_MS = 10;

interface WriterDeps {
  readonly store: Store;
  readonly announcements: Pick<Announcements, "isWatched" | "onWatched">;
  readonly sanitizer: Sanitizer;
  /** Of this worker. */
  readonly batch: ChunkBatch;
}

type Place = WaitingPieces["at"] & { readonly model: string };

export class ChunkWriter implements WaitingPieces {
  readonly at: WaitingPieces["at"];
  /** Resolves when the pieces that were taken are written. */
  writing: Promise<void> = Promise.resolve();
  readonly #deps: WriterDeps;
  readonly #model: string;
  readonly #streams: Readonly<Record<"text" | "reasoning", ReturnType<Sanitizer["stream"]>>>;
  readonly #stopHearing: () => void;
  #call: StreamedCall | undefined;
  #chunks: ChunkRow[] = [];
  #timer: NodeJS.Timeout | undefined;
  /** By `performance.now()`. */
  #writtenAt = -Infinity;

  constructor(deps: WriterDeps, { model, ...at }: Place) {
    this.#deps = deps;
    this.#model = model;
    this.at = at;
    this.#streams = { text: deps.sanitizer.stream(), reasoning: deps.sanitizer.stream() };
    // A new watcher sees at once what has arrived so far.
    this.#stopHearing = deps.announcements.onWatched(at.sessionId, () => {
      if (this.#chunks.length > 0) this.#flush();
    });
  }

  /** Never throws and never waits. */
  push(delta: ModelDelta): void {
    switch (delta.type) {
      case "text":
      case "reasoning":
        return this.#add(delta.type, this.#streams[delta.type].push(delta.text));
      case "tool-call":
        this.#addAll(this.#call?.end());
        this.#call = new StreamedCall(delta.toolName, this.#deps.sanitizer);
        return;
      case "tool-input":
        return this.#addAll(this.#call?.push(delta.text));
      case "thinking":
        return this.#reportThinking();
    }
  }

  /** Writes the remaining pieces if anyone watches. Pieces that cannot be written are lost to watchers, not to the transcript. */
  async end(): Promise<void> {
    this.#addAll(this.#call?.end());
    this.#add("reasoning", this.#streams.reasoning.end());
    this.#add("text", this.#streams.text.end());
    this.#stopHearing();
    clearTimeout(this.#timer);
    this.#deps.batch.remove(this);
    // The stored answer follows at once, so no one would read the pieces before it.
    if (this.#chunks.length > 0 && this.#isWatched()) this.#flush();
    await this.writing;
  }

  /** For the batch. */
  take(): readonly ChunkRow[] {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const chunks = this.#chunks;
    this.#chunks = [];
    return chunks;
  }

  #isWatched(): boolean {
    return this.#deps.announcements.isWatched(this.at.sessionId);
  }

  #flush(): void {
    this.#writtenAt = performance.now();
    this.#deps.batch.write([this]);
  }

  #addAll(list: readonly ChunkRow[] = []): void {
    for (const { chunkType, text } of list) this.#add(chunkType, text);
  }

  #add(chunkType: ChunkRow["chunkType"], text: string): void {
    if (text === "") return;
    const last = this.#chunks.at(-1);
    if (last !== undefined && last.chunkType === chunkType && chunkType !== "tool-name")
      this.#chunks[this.#chunks.length - 1] = { chunkType, text: last.text + text };
    else this.#chunks.push({ chunkType, text });
    const waitMs = Math.max(TOGETHER_MS, this.#writtenAt + WATCHED_MS - performance.now());
    if (this.#isWatched()) this.#timer ??= setTimeout(() => this.#flush(), waitMs);
    else this.#deps.batch.add(this);
  }

  /** Rare: at most once before the first piece, and after thoughts. */
  #reportThinking(): void {
    const { sessionId, epoch, step, attempt } = this.at;
    const data = { model: this.#model, hidden: true } as const;
    this.writing = this.writing
      .then(() =>
        appendEvents(this.#deps.store.db, sessionId, epoch, [{ type: "llm:thinking", step, attempt, data }]),
      )
      .catch(() => undefined);
  }
}

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
      for (const pieces of this.#waiting) this.add(pieces);
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
    const allWritten = Promise.all(answers.map(({ writing }) => writing))
      .then(() => this.#append(pieces))
      .catch((error: unknown) =>
        databaseErrorOf(error)?.final === true ? this.#eachAlone(pieces) : undefined,
      );
    for (const answer of answers) answer.writing = allWritten;
  }

  /** Writes each session's pieces alone, so that text that Postgres refuses does not cost other sessions theirs. */
  async #eachAlone(pieces: readonly Pieces[]): Promise<void> {
    if (pieces.length > 1) await Promise.allSettled(pieces.map((answer) => this.#append([answer])));
  }
}

/** Arguments are shown from this length on; shorter ones arrive at once. Chosen: some five lines. */
const TOLD_FROM_CHARS = 400;

export class StreamedCall {
  readonly #name: string;
  readonly #stream: ReturnType<Sanitizer["stream"]>;
  #held: string | undefined = "";

  constructor(name: string, sanitizer: Sanitizer) {
    this.#name = sanitizer.clean(name);
    this.#stream = sanitizer.stream();
  }

  /** @returns the chunks to publish with this piece of the arguments */
  push(piece: string): ChunkRow[] {
    if (this.#held === undefined) return [{ chunkType: "tool-input", text: this.#stream.push(piece) }];
    this.#held += piece;
    if (this.#held.length < TOLD_FROM_CHARS) return [];
    const text = this.#stream.push(this.#held);
    this.#held = undefined;
    return [
      { chunkType: "tool-name", text: this.#name },
      { chunkType: "tool-input", text },
    ];
  }

  end(): ChunkRow[] {
    return this.#held === undefined ? [{ chunkType: "tool-input", text: this.#stream.end() }] : [];
  }
}
