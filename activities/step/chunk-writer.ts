/** Live pieces of an answer on their way to watchers: gathered, masked, written in the background. */
import type { Sanitizer } from "../redaction/sanitizer.ts";
import type { Store } from "../store/db.ts";
import { appendEvents, type ChunkRow, type Notifier } from "../store/events.ts";
import type { ModelDelta } from "../model/model.ts";
import type { ChunkBatch, WaitingPieces } from "./chunk-batch.ts";
import { WrittenCall } from "./written-call.ts";

/** While someone watches. Source: survey of durable engines, D16 (50–100 ms); watchers should see a piece within 300 ms. */
const WATCHED_GATHER_MS = 60;

export interface ChunkWriter {
  /** Never throws and never waits. */
  push(delta: ModelDelta): void;
  /** Writes what is left for those who watch. Pieces that could not be written are lost to them, not to the transcript. */
  end(): Promise<void>;
}

interface WriterDeps {
  readonly store: Store;
  readonly notifier: Notifier;
  readonly sanitizer: Sanitizer;
  /** Of this worker. */
  readonly batch: ChunkBatch;
}

export function createChunkWriter(
  { store, notifier, sanitizer, batch }: WriterDeps,
  { model, ...at }: WaitingPieces["at"] & { readonly model: string },
): ChunkWriter {
  const { sessionId, epoch, step, attempt } = at;
  const streams = { text: sanitizer.stream(), reasoning: sanitizer.stream() };
  let call: WrittenCall | undefined;
  let chunks: ChunkRow[] = [];
  let timer: NodeJS.Timeout | undefined;
  const waiting: WaitingPieces = {
    at,
    take() {
      clearTimeout(timer);
      timer = undefined;
      const taken = chunks;
      chunks = [];
      return taken;
    },
    writing: Promise.resolve(),
  };
  const wake = () => notifier.wake(sessionId);
  const flush = () => {
    batch.write([waiting]);
    void waiting.writing.then(wake);
  };
  const add = (chunkType: ChunkRow["chunkType"], text: string) => {
    if (text === "") return;
    const last = chunks.at(-1);
    if (last !== undefined && last.chunkType === chunkType && chunkType !== "tool-name")
      chunks[chunks.length - 1] = { chunkType, text: last.text + text };
    else chunks.push({ chunkType, text });
    if (notifier.isWatched(sessionId)) timer ??= setTimeout(flush, WATCHED_GATHER_MS);
    else batch.add(waiting);
  };
  // Anyone who begins to watch sees at once what there is.
  const stopHearing = notifier.onWatched(sessionId, () => {
    if (chunks.length > 0) flush();
  });
  const addAll = (list: readonly ChunkRow[] = []) => {
    for (const { chunkType, text } of list) add(chunkType, text);
  };
  const hidden = { type: "llm:thinking", step, attempt, data: { model, hidden: true } } as const;
  return {
    push(delta) {
      if (delta.type === "text" || delta.type === "reasoning")
        add(delta.type, streams[delta.type].push(delta.text));
      if (delta.type === "tool-call") {
        addAll(call?.end());
        call = new WrittenCall(delta.toolName, sanitizer);
      }
      if (delta.type === "tool-input") addAll(call?.push(delta.text));
      // Rare: at most once in each 5 s without a piece.
      if (delta.type === "thinking")
        waiting.writing = waiting.writing
          .then(() => appendEvents(store.db, sessionId, epoch, [hidden]))
          .then(wake, () => undefined);
    },
    async end() {
      addAll(call?.end());
      add("reasoning", streams.reasoning.end());
      add("text", streams.text.end());
      stopHearing();
      clearTimeout(timer);
      batch.remove(waiting);
      // The answer follows at once, and no one would read them before it.
      if (chunks.length > 0 && notifier.isWatched(sessionId)) flush();
      await waiting.writing;
    },
  };
}
