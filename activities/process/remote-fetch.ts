/** Requests to forges and stores, through the environment's proxies as git's own, and what their servers say in words for people. */
import { isNetworkTrouble, innermostReason, theirWords } from "../contract/errors.ts";
import { createOutgoing, type BoundedFetch, type Outgoing } from "./outgoing-fetch.ts";

const MAX_SERVER_CHARS = 500;

let made: Promise<Outgoing> | undefined;

/** Has no time limit but the caller's. */
export const gitFetch: BoundedFetch = async (input, init) => {
  made ??= createOutgoing();
  return (await made).fetch(input, init);
};

/** Slower than this on the whole is no progress either. Chosen: the slowest links that people work with are faster. */
const SLOWEST_BYTES_PER_SECOND = 10_000;

/** Abandons a request that makes no progress for this time, or takes far too long for that many bytes. */
export function patience(signal: AbortSignal, silenceMs: number, bytes: number) {
  const silent = new AbortController();
  const why = new Error(`no progress for ${silenceMs / 1_000} s`);
  const timer = setTimeout(() => silent.abort(why), silenceMs);
  const tooSlow = AbortSignal.timeout(silenceMs + Math.ceil(bytes / SLOWEST_BYTES_PER_SECOND) * 1_000);
  return {
    signal: AbortSignal.any([signal, silent.signal, tooSlow]),
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

/** A server's answer on one line, without characters that control a terminal. */
export const serverWords = (text: string): string => theirWords(text, MAX_SERVER_CHARS);

/** Why a request had no answer, of a server or of a certificate that is not trusted. */
export const noAnswerReason = (server: string, error: unknown): string =>
  `${server} ${isNetworkTrouble(error) ? "does not answer" : "could not be asked"}: ${innermostReason(error)}`;
