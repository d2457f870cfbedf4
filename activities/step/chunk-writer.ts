/** Live pieces of an answer on their way to watchers: gathered, masked, written in the background. */
import type { Sanitizer } from "../redaction/sanitizer.ts";
import type { Store } from "../store/db.ts";
import { appendChunks, appendEvents, type ChunkRow, type Notifier } from "../store/events.ts";
import type { ModelDelta } from "../model/model.ts";
import { WrittenCall } from "./written-call.ts";

/** While somebody watches. Source: survey of durable engines, D16 (50–100 ms); watchers are to see a piece within 300 ms. */
const WATCHED_GATHER_MS = 60;
/** While nobody does: what a crash may take of what was said. Source: requirement 9, at most 20 commits in a step of 10 s. */
const GATHER_MS = 1_000;

export interface ChunkWriter {
  /** Never throws and never waits. */
  push(delta: ModelDelta): void;
  /** Writes what is left for those who watch. Pieces that could not be written are lost to them, not to the transcript. */
  end(): Promise<void>;
}

export function createChunkWriter(
  deps: { readonly store: Store; readonly notifier: Notifier; readonly sanitizer: Sanitizer },
  at: {
    readonly sessionId: string;
    readonly epoch: number;
    readonly step: number;
    readonly attempt: number;
    readonly model: string;
  },
): ChunkWriter {
  const streams = { text: deps.sanitizer.stream(), reasoning: deps.sanitizer.stream() };
  let call: WrittenCall | undefined;
  let waiting: ChunkRow[] = [];
  let timer: NodeJS.Timeout | undefined;
  let writing: Promise<void> = Promise.resolve();

  const add = (chunkType: ChunkRow["chunkType"], text: string) => {
    if (text === "") return;
    const last = waiting.at(-1);
    if (last !== undefined && last.chunkType === chunkType && chunkType !== "tool-name")
      waiting[waiting.length - 1] = { chunkType, text: last.text + text };
    else waiting.push({ chunkType, text });
    timer ??= setTimeout(flush, deps.notifier.isWatched(at.sessionId) ? WATCHED_GATHER_MS : GATHER_MS);
  };
  const write = (append: () => Promise<unknown>) => {
    writing = writing
      .then(append)
      .then(() => deps.notifier.wake(at.sessionId))
      .catch(() => undefined);
  };
  const flush = () => {
    clearTimeout(timer);
    timer = undefined;
    const chunks = waiting;
    waiting = [];
    write(() => appendChunks(deps.store.db, at, chunks));
  };
  // Whoever comes to watch sees at once what there is.
  const stopHearing = deps.notifier.onWatched(at.sessionId, () => {
    if (waiting.length > 0) flush();
  });
  const addAll = (chunks: readonly ChunkRow[] = []) => {
    for (const { chunkType, text } of chunks) add(chunkType, text);
  };
  const { sessionId, epoch, step, attempt, model } = at;
  const hidden = { type: "llm:thinking", step, attempt, data: { model, hidden: true } } as const;
  return {
    push(delta) {
      if (delta.type === "text" || delta.type === "reasoning")
        add(delta.type, streams[delta.type].push(delta.text));
      if (delta.type === "tool-call") {
        addAll(call?.end());
        call = new WrittenCall(delta.toolName, deps.sanitizer);
      }
      if (delta.type === "tool-input") addAll(call?.push(delta.text));
      // Rare: at most once in each 5 s without a piece.
      if (delta.type === "thinking") write(() => appendEvents(deps.store.db, sessionId, epoch, [hidden]));
    },
    async end() {
      addAll(call?.end());
      add("reasoning", streams.reasoning.end());
      add("text", streams.text.end());
      stopHearing();
      clearTimeout(timer);
      // The answer follows at once: nobody is there who would read them before.
      if (waiting.length > 0 && deps.notifier.isWatched(at.sessionId)) flush();
      await writing;
    },
  };
}
