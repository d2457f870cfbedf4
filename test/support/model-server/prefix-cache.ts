/**
 * What a provider bills for a request whose beginning it has seen before: from 1,024 tokens, in steps of 128.
 * Source: OpenAI's prompt caching guide. Pure.
 */
const MINIMUM_TOKENS = 1_024;
const STEP_TOKENS = 128;
/** Requests it remembers. */
const REMEMBERED = 4;

/** A piece of a request that is the same, or is not: identity of the key counts. */
export interface Segment {
  readonly key: unknown;
  readonly tokens: number;
}

export const tokensOf = (segments: readonly Segment[]): number =>
  segments.reduce((sum, segment) => sum + segment.tokens, 0);

export class PrefixCache {
  #known: (readonly Segment[])[] = [];

  /** @returns how many of the request's tokens were cached; it is remembered for the next */
  send(request: readonly Segment[], tokens = tokensOf(request)): number {
    const common = Math.max(0, ...this.#known.map((known) => commonTokens(known, request)));
    this.#known = [request, ...this.#known].slice(0, REMEMBERED);
    // The last token is never cached: there must be something left to compute.
    const usable = Math.min(common, tokens - 1);
    return usable < MINIMUM_TOKENS ? 0 : usable - (usable % STEP_TOKENS);
  }

  /** After an hour nothing is there any more. */
  forget(): void {
    this.#known = [];
  }
}

function commonTokens(known: readonly Segment[], request: readonly Segment[]): number {
  const end = request.findIndex((segment, index) => known[index]?.key !== segment.key);
  return tokensOf(end === -1 ? request : request.slice(0, end));
}
