/** A long tool call while its arguments are still being written, as watchers see it. */
import type { Sanitizer } from "../redaction/sanitizer.ts";
import type { ChunkRow } from "../store/events.ts";

/** Arguments are shown from this length on; shorter ones arrive at once. Source: ours, some five lines. */
const TOLD_FROM_CHARS = 400;

export class WrittenCall {
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
