/**
 * Counts and bills as the real service does: cached tokens for a prefix that was sent before under the same key.
 * Source: OpenAI's prompt caching guide (from 1,024 tokens, in steps of 128).
 */
import { createHash } from "node:crypto";
import type { ParsedRequest, WireItem, WirePart } from "./wire.ts";

const CACHE_MINIMUM_TOKENS = 1_024;
const CACHE_STEP_TOKENS = 128;
/** Tokens per message for the format itself. Source: OpenAI cookbook, 3 per message. */
const TOKENS_PER_ITEM = 3;
/** One high-detail image of 1,024 × 1,024. Source: OpenAI's vision guide. */
const TOKENS_PER_IMAGE = 765;
const MAX_REMEMBERED_COUNTS = 20_000;
const MAX_PREFIXES_PER_KEY = 4;

interface Segment {
  readonly hash: string;
  readonly tokens: number;
}

/** A request's size, for the bill and the window check. */
export interface Measured {
  readonly tokens: number;
  readonly segments: readonly Segment[];
}

export class Biller {
  readonly #countTokens: (text: string) => number;
  readonly #counts = new Map<string, number>();
  readonly #prefixes = new Map<string, (readonly Segment[])[]>();

  constructor(countTokens: (text: string) => number) {
    this.#countTokens = countTokens;
  }

  /** Tokens of a text, cached. */
  count(text: string): number {
    return this.#remembered(hashOf(text), text);
  }

  measure(request: Omit<ParsedRequest, "inputTokens">): Measured {
    const segments = [
      this.#segment(request.tools.map((tool) => JSON.stringify(tool)).join("\n"), 0),
      this.#segment(request.system, TOKENS_PER_ITEM),
      ...request.items.map((item) => this.#segment(textOf(item), TOKENS_PER_ITEM + mediaTokens(item))),
    ];
    return { tokens: segments.reduce((sum, one) => sum + one.tokens, 0), segments };
  }

  /** Cached tokens of an accepted request; stores it for the next. */
  cached(request: Pick<ParsedRequest, "model" | "cacheKey">, { segments, tokens }: Measured): number {
    const key = `${request.model}\n${request.cacheKey ?? ""}`;
    const known = this.#prefixes.get(key) ?? [];
    const common = Math.max(0, ...known.map((prefix) => commonTokens(prefix, segments)));
    this.#prefixes.set(key, [segments, ...known].slice(0, MAX_PREFIXES_PER_KEY));
    // The last token is never cached: something must be left to compute.
    const usable = Math.min(common, tokens - 1);
    return usable < CACHE_MINIMUM_TOKENS ? 0 : usable - (usable % CACHE_STEP_TOKENS);
  }

  #segment(text: string, extra: number): Segment {
    const hash = hashOf(text);
    return { hash, tokens: this.#remembered(hash, text) + extra };
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

function commonTokens(known: readonly Segment[], now: readonly Segment[]): number {
  let tokens = 0;
  for (const [index, segment] of now.entries()) {
    if (known[index]?.hash !== segment.hash) break;
    tokens += segment.tokens;
  }
  return tokens;
}

function hashOf(text: string): string {
  return createHash("sha1").update(text).digest("base64");
}

function textOf(item: WireItem): string {
  switch (item.type) {
    case "message":
    case "result":
      return item.parts.map(partText).join("\n");
    case "reasoning":
      return item.text;
    case "call":
      return `${item.name}\n${item.arguments}`;
    case "reference":
      return item.id;
  }
}

function partText(part: WirePart): string {
  return part.type === "text" ? part.text : "";
}

function mediaTokens(item: WireItem): number {
  if (item.type !== "message" && item.type !== "result") return 0;
  return item.parts.filter((part) => part.type !== "text").length * TOKENS_PER_IMAGE;
}
