/** The address and credentials for a model. Pure. */
import type { ModelTarget } from "../config/model-target.ts";
import { type Environment, findProvider, fullModelName, missingVariables } from "../config/providers.ts";
import { ModelError } from "./model.ts";

export interface Endpoint {
  /** The model's name on the wire. */
  readonly modelId: string;
  /** Undefined if the server requires none. */
  readonly apiKey: string | undefined;
  /** Undefined: the SDK's own for its wire. */
  readonly baseUrl: string | undefined;
  readonly headers: Readonly<Record<string, string>>;
  readonly query: Readonly<Record<string, string>>;
}

/** @throws ModelError if a key or an address is missing */
export function endpointOf(target: ModelTarget, environment: Environment): Endpoint {
  const { model, modelName } = target;
  // Sessions that are older than this setting have no provider.
  const provider = target.provider ?? findProvider(model, {}, environment)?.provider;
  const missing = provider === undefined ? [] : missingVariables(provider, environment);
  if (provider === undefined || missing.length > 0) {
    throw new ModelError(
      provider === undefined
        ? `There is no provider for ${model}. Set OPENAI_BASE_URL to a compatible server that has it.`
        : `There is no key or address for ${provider.name}. Set ${missing.join(" and ")} for the worker and resume.`,
      { class: provider === undefined ? "not-found" : "credentials" },
    );
  }
  const { baseUrl, baseUrlEnv, keyEnv, headers = {}, headersEnv = {}, query = {} } = provider;
  const secret = Object.entries(headersEnv).flatMap(([header, variable]) => {
    const value = environment[variable];
    return value === undefined ? [] : [[header, value] as const];
  });
  return {
    modelId: modelName ?? fullModelName(model).replace(/^(openai|rehearsal)\//, ""),
    apiKey: (keyEnv === undefined ? undefined : environment[keyEnv]) || undefined,
    baseUrl: baseUrl ?? ((baseUrlEnv === undefined ? undefined : environment[baseUrlEnv]) || undefined),
    headers: { ...headers, ...Object.fromEntries(secret) },
    query,
  };
}
