/** Gathers, masks and writes the live pieces of an answer for watchers, in the background. */
import type { Sanitizer } from "../redaction/sanitizer.ts";
import type { Store } from "../store/db.ts";
import { appendEvents, type ChunkRow, type Notifier } from "../store/events.ts";
import type { ModelDelta } from "../model/model.ts";
import type { ChunkBatch, WaitingPieces } from "./chunk-batch.ts";
import { WrittenCall } from "./written-call.ts";

/**
 * Least time between two writes while someone watches. Source: survey of durable engines, D16 (50–100 ms); watchers should see a
 * piece within 300 ms.
 */
export const WATCHED_MS = 60;
/** Pieces come gathered; those that come together are written together. Source: ours, a turn or two of a busy event loop. */
const TOGETHER_MS = 10;

interface WriterDeps {
  readonly store: Store;
  readonly notifier: Notifier;
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
  #call: WrittenCall | undefined;
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
    this.#stopHearing = deps.notifier.onWatched(at.sessionId, () => {
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
        this.#call = new WrittenCall(delta.toolName, this.#deps.sanitizer);
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
    const taken = this.#chunks;
    this.#chunks = [];
    return taken;
  }

  #isWatched(): boolean {
    return this.#deps.notifier.isWatched(this.at.sessionId);
  }

  readonly #wake = (): void => this.#deps.notifier.wake(this.at.sessionId);

  #flush(): void {
    this.#writtenAt = performance.now();
    this.#deps.batch.write([this]);
    void this.writing.then(this.#wake);
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
      .then(this.#wake, () => undefined);
  }
}
