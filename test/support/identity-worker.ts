/** A worker's model port with the operator's providers, whose addresses lead to a cloud of the test. */
import { agentConfigSchema } from "../../activities/config/agent-config.ts";
import { operatorProviderSchema } from "../../activities/config/operator-policy.ts";
import { presetAddress } from "../../activities/config/presets.ts";
import { resolveModel } from "../../activities/config/models.ts";
import type { ModelTarget } from "../../activities/config/model-target.ts";
import { createAiSdkModel } from "../../activities/model/ai-sdk.ts";
import { Identities } from "../../activities/model/identity/identities.ts";
import { createSanitizer, joinedSecrets } from "../../activities/redaction/sanitizer.ts";
import { modelRequest, type RequestParts } from "./model-request.ts";

export const SECRET = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";
const environment = {
  PATH: process.env["PATH"],
  AWS_ACCESS_KEY_ID: "AKIDEXAMPLE",
  AWS_SECRET_ACCESS_KEY: SECRET,
};

/** Google's and Microsoft's libraries, as far as we use them: each token is another one. */
function libraries() {
  let count = 0;
  const packages: Readonly<Record<string, unknown>> = {
    "google-auth-library": {
      GoogleAuth: class {
        getClient = async () => ({
          getAccessToken: async () => ({ token: `ya29.google-${(count += 1)}` }),
          credentials: { expiry_date: Date.now() + 3_600_000 },
        });
        getCredentials = async () => ({ client_email: "bot@p1.iam.gserviceaccount.com" });
      },
    },
    "@azure/identity": {
      DefaultAzureCredential: class {
        getToken = async (scope: string) => ({
          token: `entra-${(count += 1)}-${scope.length}`,
          expiresOnTimestamp: Date.now() + 3_600_000,
        });
      },
    },
  };
  return async (name: string) => {
    if (packages[name] === undefined) throw Object.assign(new Error(name), { code: "ERR_MODULE_NOT_FOUND" });
    return packages[name];
  };
}

/** Asks as a worker does whose policy file has these providers; addresses lead to the cloud of the test. */
export function worker(
  providers: Readonly<Record<string, object>>,
  origin: string,
  options: { load?: (name: string) => Promise<unknown> } = {},
) {
  const placed = Object.entries(providers).map(([name, settings]) => {
    const provider = operatorProviderSchema.parse(settings);
    const address = provider.baseUrl ?? presetAddress(provider) ?? "";
    return [name, { ...provider, baseUrl: address.replace(/^https?:\/\/[^/]+/, origin) }] as const;
  });
  const identities = new Identities({
    providers: Object.fromEntries(placed),
    environment,
    load: options.load ?? libraries(),
  });
  const sanitizer = createSanitizer([SECRET], joinedSecrets(identities.issued));
  const model = createAiSdkModel({ environment: {}, identities, mask: sanitizer.clean });
  type Asked = [name: string, parts?: RequestParts, client?: Readonly<Record<string, object>>];
  const requestOf = (...[name, parts = {}, client = {}]: Asked) => {
    const config = agentConfigSchema.parse({ providers: client });
    const found = resolveModel(name, config);
    if (!found.ok) throw new Error(found.message);
    const target: ModelTarget = found.model;
    return modelRequest({ ...target, ...parts });
  };
  const { signal } = new AbortController();
  const ask = async (...args: Asked) => model.ask(requestOf(...args), () => undefined, signal);
  const count = async (...args: Asked) => model.count?.(requestOf(...args), signal);
  return { ask, count, identities, sanitizer };
}
