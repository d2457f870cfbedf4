/** Counts and bills as the real service does: cached tokens for a prefix that was sent before under the same key. */
import { createHash } from "node:crypto";
import { PrefixCache, tokensOf, type Segment } from "./prefix-cache.ts";
import type { ParsedRequest, UncountedRequest, WireItem } from "./wire.ts";

/** Tokens per message for the format itself. Source: OpenAI cookbook, 3 per message. */
const TOKENS_PER_ITEM = 3;
/** One high-detail image of 1,024 × 1,024. Source: OpenAI's vision guide. */
const TOKENS_PER_IMAGE = 765;
const MAX_REMEMBERED_COUNTS = 20_000;

/** A request's size, for the bill and the window check. */
export interface Measured {
  readonly tokens: number;
  readonly segments: readonly Segment[];
}

export class Biller {
  readonly #countTokens: (text: string) => number;
  readonly #counts = new Map<string, number>();
  readonly #caches = new Map<string, PrefixCache>();

  constructor(countTokens: (text: string) => number) {
    this.#countTokens = countTokens;
  }

  /** Tokens of a text, cached. */
  count(text: string): number {
    return this.#remembered(hashOf(text), text);
  }

  measure(request: UncountedRequest): Measured {
    const segments = [
      this.#segment(request.tools.map((tool) => JSON.stringify(tool)).join("\n"), 0),
      this.#segment(request.system, TOKENS_PER_ITEM),
      ...request.items.map((item) => this.#segment(textOf(item), TOKENS_PER_ITEM + mediaTokens(item))),
    ];
    return { tokens: tokensOf(segments), segments };
  }

  /** Cached tokens of an accepted request; stores it for the next. */
  cached(request: Pick<ParsedRequest, "model" | "cacheKey">, { segments, tokens }: Measured): number {
    const key = `${request.model}\n${request.cacheKey ?? ""}`;
    const cache = this.#caches.get(key) ?? new PrefixCache();
    this.#caches.set(key, cache);
    return cache.send(segments, tokens);
  }

  #segment(text: string, extra: number): Segment {
    const key = hashOf(text);
    return { key, tokens: this.#remembered(key, text) + extra };
  }

  #remembered(hash: string, text: string): number {
    let tokens = this.#counts.get(hash);
    if (tokens === undefined) {
      tokens = text === "" ? 0 : this.#countTokens(text);
      if (this.#counts.size >= MAX_REMEMBERED_COUNTS) this.#counts.clear();
      this.#counts.set(hash, tokens);
    }
    return tokens;
  }
}

function hashOf(text: string): string {
  return createHash("sha1").update(text).digest("base64");
}

function textOf(item: WireItem): string {
  switch (item.type) {
    case "message":
    case "result":
      return item.parts.map((part) => (part.type === "text" ? part.text : "")).join("\n");
    case "reasoning":
      return item.text;
    case "call":
      return `${item.name}\n${item.arguments}`;
    case "reference":
      return item.id;
  }
}

function mediaTokens(item: WireItem): number {
  if (item.type !== "message" && item.type !== "result") return 0;
  return item.parts.filter((part) => part.type !== "text").length * TOKENS_PER_IMAGE;
}
