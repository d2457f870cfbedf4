/** A wire: the package that sends its requests, and the settings for it. */
import { createHash } from "node:crypto";
import type { LanguageModel } from "ai";
import type { ModelTarget } from "../../config/model-target.ts";
import type { Fetch } from "../../process/outgoing-fetch.ts";
import type { Endpoint } from "../endpoint.ts";
import type { ModelRequest } from "../model.ts";
import type { WireRules } from "../request/wire-rules.ts";
import type { StreamReading } from "../stream-events.ts";

export interface WireCall {
  readonly request: ModelRequest;
  readonly endpoint: Endpoint;
  readonly rules: WireRules;
  /** @param reading reads the events of this one answer before the SDK does */
  readonly fetchWith: (reading?: StreamReading) => Fetch;
}

/** Values are JSON: the SDK checks them by the package's own schema. */
type ProviderOptions = Record<string, Record<string, never>>;

export interface WireSettings {
  readonly model: LanguageModel;
  readonly providerOptions: ProviderOptions;
}

export type Wire = (call: WireCall) => WireSettings;

/** The key to pass to a package if there is none. */
export const NO_KEY = "none";

export function options(name: string, values: Record<string, unknown>): ProviderOptions {
  return { [name]: values as Record<string, never> };
}

/** The summary of the reasoning that is requested for people; null: none. */
export function summaryOf({ reasoning }: ModelTarget): string | null {
  const summary = reasoning?.summary ?? "auto";
  return summary === "none" ? null : summary;
}

/** Source: OpenAI refuses the whole request with a longer one. */
const MAX_CACHE_KEY_CHARS = 64;

/**
 * A session's key in its provider's cache: its id; a longer one, as of delegates of long ids and of runs started by hand, is replaced by its SHA-256
 * in hex: 64 characters.
 */
export function toCacheKey(sessionId: string): string {
  return sessionId.length <= MAX_CACHE_KEY_CHARS
    ? sessionId
    : createHash("sha256").update(sessionId).digest("hex");
}
