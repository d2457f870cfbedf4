/** Reads a provider's bill in each of its forms, and discards one that cannot be true. */
import type { LanguageModelUsage } from "ai";
import type { StepUsage } from "../contract/activities.ts";
import { toObject } from "../text/json.ts";

/** As the SDK has it; `raw` is the provider's own object. */
type ReportedUsage = LanguageModelUsage;

/**
 * The bill in tokens; undefined if it is NaN, of zero input, or absurd: providers report such figures, too.
 * @param mostTokens that usage can be with this model: see `windowMeasures`
 */
export function trustedUsage(reported: ReportedUsage, mostTokens: number): StepUsage | undefined {
  const figures = figuresOf(reported);
  const [input, output] = [whole(figures.input), whole(figures.output)];
  const { cached, cacheWrite, reasoning } = figures;
  if (!isCount(input) || !isCount(output) || input === 0) return undefined;
  if (input > mostTokens || output > mostTokens) return undefined;
  const written = part(cacheWrite, input - part(cached, input));
  return {
    input,
    output,
    cached: part(cached, input),
    cacheWrite: written > 0 ? written : undefined,
    reasoning: part(reasoning, output),
  };
}

interface Figures {
  readonly input: number | undefined;
  readonly output: number | undefined;
  readonly cached: number | undefined;
  readonly cacheWrite: number | undefined;
  readonly reasoning: number | undefined;
}

/**
 * The SDK's figures, and if it has none those of forms that it does not know: DeepSeek's hits and misses, Moonshot's
 * `cached_tokens` at the top level, OpenRouter's `cache_write_tokens`, Anthropic's fields as routers pass them on.
 */
function figuresOf(reported: ReportedUsage): Figures {
  const { inputTokens, inputTokenDetails, outputTokens, outputTokenDetails } = reported;
  const raw = toObject(reported.raw);
  const details = toObject(raw["prompt_tokens_details"] ?? raw["input_tokens_details"]);
  const hit = count(raw["prompt_cache_hit_tokens"]);
  const cached =
    firstAboveZero([
      inputTokenDetails.cacheReadTokens,
      raw["cached_tokens"],
      hit,
      raw["cache_read_input_tokens"],
    ]) ?? 0;
  const cacheWrite = firstAboveZero([
    inputTokenDetails.cacheWriteTokens,
    details["cache_write_tokens"],
    raw["cache_creation_input_tokens"],
  ]);
  const misses = count(raw["prompt_cache_miss_tokens"]);
  const hitsAndMisses = misses === undefined ? undefined : misses + (hit ?? 0);
  // The SDK says 0 if a field of the wire is absent.
  const stated = inputTokens || firstAboveZero([raw["prompt_tokens"], hitsAndMisses]) || inputTokens;
  const fresh = stated || count(raw["input_tokens"]);
  // Anthropic counts input without its cache; so does a server that reports more from the cache than in all.
  const isExclusive = fresh !== undefined && (!stated || cached > fresh);
  return {
    input: isExclusive ? fresh + cached + (cacheWrite ?? 0) : fresh,
    output: outputTokens || (count(raw["completion_tokens"] ?? raw["output_tokens"]) ?? outputTokens),
    cached,
    cacheWrite,
    reasoning: outputTokenDetails.reasoningTokens,
  };
}

/**
 * The call's cost in USD as a router reports it: OpenRouter's `usage.cost`. With the person's own key for the provider behind
 * it (`is_byok`) that is the router's share, and the provider's is in `cost_details`.
 */
export function reportedCostUsd(reported: Pick<ReportedUsage, "raw">): number | undefined {
  const raw = toObject(reported.raw);
  const cost = count(raw["cost"]);
  if (cost === undefined) return undefined;
  const upstream = count(toObject(raw["cost_details"])["upstream_inference_cost"]) ?? 0;
  return raw["is_byok"] === true ? cost + upstream : cost;
}

/** The bill in a chunk of a chat stream: at the top level, in the choice (Moonshot), or in Groq's own object. */
export function usageInChunk(chunk: unknown): object | undefined {
  const { usage, choices, x_groq: groq } = toObject(chunk);
  const inChoice = Array.isArray(choices) ? choices.map((choice) => toObject(choice)["usage"]) : [];
  return [usage, ...inChoice, toObject(groq)["usage"]].find(
    (bill): bill is object => typeof bill === "object" && bill !== null,
  );
}

function count(value: unknown): number | undefined {
  return isCount(value) ? value : undefined;
}

function firstAboveZero(values: readonly unknown[]): number | undefined {
  return values.map(count).find((value) => value !== undefined && value > 0);
}

function isCount(value: unknown): value is number {
  return typeof value === "number" && Number.isFinite(value) && value >= 0;
}

/** A part of a figure is never more than the figure. */
function part(value: number | undefined, all: number): number {
  return isCount(value) ? Math.min(Math.round(value), all) : 0;
}

/** Some servers estimate and report 12.5; tokens are stored as integers. */
const whole = (value: number | undefined) => (isCount(value) ? Math.round(value) : undefined);
