/**
 * What a provider bills for a request whose beginning it has seen before: from 1,024 tokens, in steps of 128.
 * Source: OpenAI's prompt caching guide. Pure.
 */
const MINIMUM_TOKENS = 1_024;
const STEP_TOKENS = 128;
/** Requests it remembers. */
const REMEMBERED = 6;

/** A piece of a request that is the same, or is not: identity counts. */
export interface Segment {
  readonly key: unknown;
  readonly tokens: number;
}

export class PrefixCache {
  #known: (readonly Segment[])[] = [];

  /** @returns tokens of the whole request and those of them that were cached */
  send(request: readonly Segment[]): { readonly input: number; readonly cached: number } {
    const input = request.reduce((sum, segment) => sum + segment.tokens, 0);
    const common = Math.max(0, ...this.#known.map((known) => commonTokens(known, request)));
    this.#known = [request, ...this.#known].slice(0, REMEMBERED);
    // The last token is never cached: there must be something left to compute.
    const usable = Math.min(common, input - 1);
    return { input, cached: usable < MINIMUM_TOKENS ? 0 : usable - (usable % STEP_TOKENS) };
  }

  /** After an hour nothing is there any more. */
  forget(): void {
    this.#known = [];
  }
}

function commonTokens(known: readonly Segment[], request: readonly Segment[]): number {
  let tokens = 0;
  for (const [index, segment] of request.entries()) {
    if (known[index]?.key !== segment.key) break;
    tokens += segment.tokens;
  }
  return tokens;
}
