/** What `doctor` reports about the policy's identities: each source is asked for a token, and says whose it is. */
import { Identities } from "../../activities/model/identity/identities.ts";
import { ModelError } from "../../activities/model/model.ts";
import { createSanitizer } from "../../activities/redaction/sanitizer.ts";
import { secretsOf } from "../../activities/redaction/secret-values.ts";
import { readPolicy } from "../../worker/read-policy.ts";
import { WrongSettings } from "../../temporal/wrong-settings.ts";
import type { Environment } from "../config/environment.ts";
import type { Finding } from "./sandbox-check.ts";

type Check = Finding & { readonly name: string };

const MAX_MS = 10_000;

/** @param options for tests: where optional packages come from */
export async function identityChecks(
  environment: Environment = process.env,
  options: { readonly load?: (name: string) => Promise<unknown> } = {},
): Promise<Check[]> {
  const identities = identitiesIn(environment, options);
  if (identities === undefined) return [];
  const { clean } = createSanitizer(secretsOf(environment), identities.issued);
  identities.maskWith(clean);
  return Promise.all(
    identities.names.map(async (provider) => {
      const name = `identity at ${provider}`;
      try {
        const who = await identities.of(provider)?.who(AbortSignal.timeout(MAX_MS));
        return { name, ok: true, found: clean(who ?? "none") };
      } catch (error) {
        const found = error instanceof ModelError ? error.message : clean(String(error));
        return { name, ok: false, found };
      }
    }),
  );
}

/** Undefined without a policy file, or with a wrong one, which has its own check. */
function identitiesIn(environment: Environment, options: object): Identities | undefined {
  const file = environment["LONGHAUL_POLICY"];
  if (!file) return undefined;
  try {
    return new Identities({ providers: readPolicy(file).providers ?? {}, environment, ...options });
  } catch (error) {
    if (error instanceof WrongSettings) return undefined;
    throw error;
  }
}
