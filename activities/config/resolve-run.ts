/** The settings of a session's run with all models resolved. */
import type { AgentConfig, RunConfig } from "./agent-config.ts";
import { costUsd } from "./cost.ts";
import type { ModelTarget } from "./model-target.ts";
import { type ModelFacts, publishedFacts, resolveModel } from "./models.ts";
import { type Environment, fullModelName } from "./providers.ts";

export type RunResolution =
  | {
      readonly ok: true;
      readonly run: RunConfig;
      readonly notes: readonly string[];
      /** The models that are in no table. */
      readonly unlisted: readonly ModelTarget[];
    }
  | { readonly ok: false; readonly message: string };

/**
 * The settings of a session's run, with its model, the model that writes its summaries and the fallback models
 * resolved. If one of them is unknown, the session is refused before anything starts.
 */
export function resolveRun(
  settings: AgentConfig,
  name: string,
  env: Environment = {},
  facts: ModelFacts = publishedFacts,
): RunResolution {
  const own = resolveModel(name, settings, env, facts);
  if (!own.ok) return own;
  const resolved = [own];
  const run = ownRun(settings, own.model);
  const { model: delegateModel, ...delegate } = settings.delegate;
  const { summaryModel } = settings.context.options;
  if (summaryModel !== undefined && fullModelName(summaryModel.trim()) !== own.model.model) {
    const other = resolveModel(summaryModel, settings, env, { ...facts, needs: "text" });
    if (!other.ok) return { ok: false, message: `context.options.summaryModel: ${other.message}` };
    run.summariser = other.model;
    resolved.push(other);
  }
  if (delegateModel !== "inherit" && fullModelName(delegateModel.trim()) !== own.model.model) {
    const other = resolveModel(delegateModel, settings, env, facts);
    if (!other.ok) return { ok: false, message: `delegate.model: ${other.message}` };
    run.delegate = { ...delegate, target: other.model };
    resolved.push(other);
  }
  const config = Object.entries(settings.models).find(([key]) => fullModelName(key) === own.model.model)?.[1];
  for (const [index, id] of (config?.fallback ?? []).entries()) {
    const other = resolveModel(id, settings, env, facts);
    if (!other.ok) return { ok: false, message: `models.${name}.fallback: ${other.message}` };
    if (other.model.model === own.model.model)
      return { ok: false, message: `models.${name}.fallback[${index}] is the model itself.` };
    if (other.model.noTools === true && run.noTools !== true)
      return { ok: false, message: fallbackWithoutTools(name, other.model.model) };
    run.fallback = [...(run.fallback ?? []), other.model];
    resolved.push(other);
  }
  const unpriced = resolved.map(({ model }) => model).find(isUnpriced);
  if (settings.limits.maxCostUsd !== undefined && unpriced !== undefined) {
    const message = `limits.maxCostUsd is set, and the price of ${unpriced.model} is not known: nothing was started. Add models.${unpriced.model}.${missingPrice(unpriced)}, or remove limits.maxCostUsd.`;
    return { ok: false, message };
  }
  return {
    ok: true,
    run,
    notes: resolved.flatMap(({ notes }) => notes),
    unlisted: resolved.flatMap(({ isUnlisted, model }) => (isUnlisted ? [model] : [])),
  };
}

const fallbackWithoutTools = (name: string, model: string) =>
  `models.${name}.fallback: ${model} is used without tools (models.${model}.tools is none), and could not continue a session that has them; nothing was started. Remove it from the list.`;

/** The run with its own model only. */
function ownRun(settings: AgentConfig, model: ModelTarget): RunConfig {
  const { context, sandbox, limits, systemPrompt, instructions, skills, questions, permissions, verify } =
    settings;
  const { parallel, wait, ...others } = settings.tools;
  const tools = wait === undefined || wait === false ? others : { ...others, wait };
  const { model: _, ...delegate } = settings.delegate;
  const servers = Object.entries(settings.mcpServers).filter(([, { enabled }]) => enabled);
  return {
    ...model,
    context,
    tools,
    sandbox,
    limits,
    instructions,
    skills,
    questions,
    delegate,
    permissions,
    parallelCalls: parallel === undefined || parallel === true ? undefined : parallel,
    systemPrompt,
    ...(wait === false ? { waits: false as const } : {}),
    ...(verify === undefined ? {} : { verify }),
    mcpServers: servers.length === 0 ? undefined : Object.fromEntries(servers),
  };
}

/** A zero usage, whose cost shows whether there is a price. */
const NOTHING = { input: 0, cached: 0, output: 0 };

function isUnpriced(target: ModelTarget): boolean {
  return target.provider.name !== "rehearsal" && costUsd(target.price, NOTHING, target) === null;
}

function missingPrice({ price, tier }: Pick<ModelTarget, "price" | "tier">): string {
  return price === undefined
    ? "price: {input, cached, output} (USD per million tokens)"
    : `price with tiers: {${tier}: …}, the factor on the price for its service tier`;
}
