/** Requests to forges and stores, through the environment's proxies as git's own. */
import { createOutgoing, type Fetch, type Outgoing } from "../process/outgoing-fetch.ts";

let made: Promise<Outgoing> | undefined;

/** Has no time limit but the caller's. */
export const gitFetch: Fetch = async (input, init) => {
  made ??= createOutgoing();
  return (await made).fetch(input, init);
};

/** Abandons a request that makes no progress for this time. */
export function patience(signal: AbortSignal, silenceMs: number) {
  const silent = new AbortController();
  const why = new Error(`no progress for ${silenceMs / 1_000} s`);
  const timer = setTimeout(() => silent.abort(why), silenceMs);
  return {
    signal: AbortSignal.any([signal, silent.signal]),
    /** The same pieces; each is progress. */
    async *heard(pieces: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
      for await (const piece of pieces) {
        timer.refresh();
        yield piece;
      }
    },
    end: () => clearTimeout(timer),
  };
}
