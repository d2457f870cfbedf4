/** The address and credentials for a model. */
import type { ModelTarget, Provider } from "../config/model-target.ts";
import { lackingFields } from "../config/presets.ts";
import { type Environment, missingVariables } from "../config/providers.ts";
import type { Identities, Identity } from "./identity/identities.ts";
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
  /** Gives each request its token, in place of a key. */
  readonly identity?: Identity | undefined;
  /** Claude at Vertex: the model is in the address, and the API's version in the body. */
  readonly isVertexClaude?: boolean;
}

/** @throws ModelError if a key or an address is missing */
export function toEndpoint(
  target: ModelTarget,
  environment: Environment,
  identities?: Pick<Identities, "of">,
): Endpoint {
  const { modelName, provider } = target;
  const identity = identities?.of(provider.name);
  const missing = identity ? [] : missingVariables(provider, environment);
  if (missing.length > 0)
    throw new ModelError(
      `There is no key or address for ${provider.name}. Set ${missing.join(" and ")} for the worker and resume.`,
      { class: "credentials" },
    );
  if (provider.preset !== undefined && provider.baseUrl === undefined) throw noPlace(provider);
  const { baseUrl, baseUrlEnv, keyEnv, headers = {}, headersEnv = {}, query = {} } = provider;
  const secret = Object.entries(headersEnv).flatMap(([header, variable]) => {
    const value = environment[variable];
    return value === undefined ? [] : [[header, value] as const];
  });
  return {
    modelId: modelName,
    apiKey: (keyEnv === undefined || identity ? undefined : environment[keyEnv]) || undefined,
    baseUrl: baseUrl ?? ((baseUrlEnv === undefined ? undefined : environment[baseUrlEnv]) || undefined),
    headers: { ...headers, ...Object.fromEntries(secret) },
    query,
    identity,
    isVertexClaude: provider.preset === "vertex-claude" ? true : undefined,
  };
}

function noPlace(provider: Provider): ModelError {
  const { name, preset } = provider;
  return new ModelError(
    `This worker does not know where ${name} is: the preset ${preset} needs ${lackingFields(provider).join(" and ")}. Set providers.${name} in its policy file (LONGHAUL_POLICY), or in the longhaul.yaml that starts the session.`,
    { class: "credentials" },
  );
}
