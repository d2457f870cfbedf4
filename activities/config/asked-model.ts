/** Which of a session's models is asked. Pure. */
import type { RunConfig } from "./agent-config.ts";
import type { ModelStepInput } from "../contract/activities.ts";
import { modelTargetSchema, type ModelTarget } from "./model-target.ts";

/**
 * The configuration with the model that steps in, in the place of the session's own.
 * @param fallback which of `fallback`, from 1; undefined, or one that is not there any more: the session's own
 */
export function withFallback(config: RunConfig, fallback: number | undefined): RunConfig {
  const target = fallback === undefined ? undefined : config.fallback?.[fallback - 1];
  if (target === undefined) return config;
  // All that is not the model's stays, also the model that writes the summaries: it need not be the one that failed.
  return { ...besidesModel(config), ...target };
}

/** What of a configuration is not its model's, by the schema: a setting added to it stays if the model changes. */
export function besidesModel(config: RunConfig): Omit<RunConfig, keyof ModelTarget> {
  const settings = Object.entries(config).filter(([name]) => !(name in modelTargetSchema.shape));
  return Object.fromEntries(settings) as Omit<RunConfig, keyof ModelTarget>;
}

/**
 * Which model steps in. None does if a person gave the session another model meanwhile: neither that nor what steps in for it
 * is the model that worked last. (The first step of a run that continues another knows the session's own alone.)
 */
export function fallbackOf(
  config: RunConfig,
  { fallback, switched, model }: Pick<ModelStepInput, "fallback" | "switched" | "model">,
): number | undefined {
  if (fallback === undefined || switched === "fallback" || model === undefined) return fallback;
  return model === config.model || model === withFallback(config, fallback).model ? fallback : undefined;
}

/** The part that is its model's. */
export function modelOf(config: ModelTarget): ModelTarget {
  const own = Object.entries(config).filter(([name]) => name in modelTargetSchema.shape);
  return Object.fromEntries(own) as unknown as ModelTarget;
}

const CACHE_SECONDS = { "5m": 300, "30m": 1_800, "1h": 3_600, "24h": 86_400 } as const;

/** OpenAI's models that keep a prompt's beginning for 30 minutes. Source: OpenAI's guide to prompt caching, models of 2026. */
const LONG_CACHE = /^gpt-(5\.[6-9]|[6-9])/;

/**
 * How long a provider keeps the beginning of a request, in seconds: as configured, else what its guide says at most. Sources:
 * the guides to prompt caching of OpenAI (5-10 minutes; newest models 30), Anthropic (5 minutes), DeepSeek (hours).
 */
export function cacheSeconds({ cache, modelName, model, provider }: ModelTarget): number {
  if (cache === false) return 0;
  if (cache !== undefined) return CACHE_SECONDS[cache];
  const name = modelName ?? model.slice(model.indexOf("/") + 1);
  if (provider?.name === "deepseek") return 7_200;
  if (provider === undefined || provider.name === "openai" || provider.name === "azure")
    return LONG_CACHE.test(name) ? 1_800 : 600;
  return 300;
}
