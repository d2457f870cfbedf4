/**
 * Answers of MCP servers, of which only so much is read: a small compressed answer may be a large one. An event stream may last, so
 * there each event is bounded.
 */
import type { Fetch } from "../process/outgoing-fetch.ts";

/** Of an answer or event, without compression. Source: ours; results are cut far below it. */
const MAX_ANSWER_BYTES = 32 << 20;

const LINE_FEED = 0x0a;
const CARRIAGE_RETURN = 0x0d;

/** @returns a fetch whose bodies fail with an error beyond the limit, before more is read */
export function boundedFetch(fetch: Fetch, maxBytes = MAX_ANSWER_BYTES): Fetch {
  return async (input, init) => {
    const response = await fetch(input, init);
    if (response.body === null) return response;
    const isStream = response.headers.get("content-type")?.startsWith("text/event-stream") === true;
    const body = response.body.pipeThrough(boundOf(maxBytes, isStream));
    const bounded = new Response(body, response);
    // A made response has no address of its own, which the protocol's client reads.
    Object.defineProperty(bounded, "url", { value: response.url });
    return bounded;
  };
}

function boundOf(maxBytes: number, isStream: boolean): TransformStream<Uint8Array, Uint8Array> {
  let bytes = 0;
  let isLineEmpty = false;
  return new TransformStream<Uint8Array, Uint8Array>({
    transform(piece, controller) {
      let from = 0;
      for (
        let at = isStream ? piece.indexOf(LINE_FEED) : -1;
        at !== -1;
        at = piece.indexOf(LINE_FEED, at + 1)
      ) {
        const line = piece.subarray(from, at);
        const isBlank = line.length === 0 || (line.length === 1 && line[0] === CARRIAGE_RETURN);
        // An empty line ends an event.
        bytes = isBlank && isLineEmpty ? 0 : bytes + line.length + 1;
        isLineEmpty = true;
        from = at + 1;
      }
      const rest = piece.length - from;
      bytes += rest;
      if (rest > 0) isLineEmpty = piece[piece.length - 1] === CARRIAGE_RETURN && rest === 1 && isLineEmpty;
      if (bytes > maxBytes)
        throw new Error(`its answer has more than ${maxBytes >> 20} MiB, so the rest was not read`);
      controller.enqueue(piece);
    },
  });
}
