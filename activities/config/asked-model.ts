/** Which of a session's models is asked. */
import type { RunConfig } from "./agent-config.ts";
import type { ModelStepInput } from "../contract/activities.ts";
import { modelTargetSchema, type ModelTarget } from "./model-target.ts";

/**
 * The configuration with the fallback model in place of the session's own.
 * @param fallback which of `fallback`, from 1; undefined, or one that no longer exists: the session's own
 */
export function withFallback(config: RunConfig, fallback: number | undefined): RunConfig {
  const target = fallback === undefined ? undefined : config.fallback?.[fallback - 1];
  if (target === undefined) return config;
  // All settings outside the model stay, including the summary model: it need not be the one that failed.
  return { ...besidesModel(config), ...target };
}

/**
 * The settings that do not belong to the model, by the schema: a setting added to the configuration survives a model
 * change.
 */
export function besidesModel(config: RunConfig): Omit<RunConfig, keyof ModelTarget> {
  const settings = Object.entries(config).filter(([name]) => !(name in modelTargetSchema.shape));
  return Object.fromEntries(settings) as Omit<RunConfig, keyof ModelTarget>;
}

/**
 * Which fallback model to ask. None if a person gave the session another model meanwhile: then neither the new model
 * nor its fallback is the model that worked last. (The first step of a run that continues another knows only the
 * session's own.)
 */
export function fallbackOf(
  config: RunConfig,
  { fallback, switched, model }: Pick<ModelStepInput, "fallback" | "switched" | "model">,
): number | undefined {
  if (fallback === undefined || switched === "fallback" || model === undefined) return fallback;
  return model === config.model || model === withFallback(config, fallback).model ? fallback : undefined;
}

/** The settings that belong to the model. */
export function modelOf(config: ModelTarget): ModelTarget {
  const own = Object.entries<unknown>({ ...config }).filter(([name]) => name in modelTargetSchema.shape);
  return Object.fromEntries(own) as ModelTarget;
}

const CACHE_SECONDS = { "5m": 300, "30m": 1_800, "1h": 3_600, "24h": 86_400 } as const;

/** OpenAI's models that cache a prompt's prefix for 30 minutes. Source: OpenAI's guide to prompt caching, models of 2026. */
const LONG_CACHE = /^gpt-(5\.[6-9]|[6-9])/;

/**
 * How long a provider caches a request's prefix, in seconds: as configured, otherwise the longest time in its guide.
 * Sources: the guides to prompt caching of OpenAI (5-10 minutes; newest models 30), Anthropic (5 minutes), DeepSeek
 * (hours).
 */
export function cacheSeconds({ cache, modelName, provider }: ModelTarget): number {
  if (cache === false) return 0;
  if (cache !== undefined) return CACHE_SECONDS[cache];
  if (provider.name === "deepseek") return 7_200;
  if (provider.name === "openai" || provider.name === "azure")
    return LONG_CACHE.test(modelName) ? 1_800 : 600;
  return 300;
}
