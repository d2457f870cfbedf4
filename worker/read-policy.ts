/** The operator's policy file. */
import { readFileSync } from "node:fs";
import { parse } from "yaml";
import { issueTexts } from "../activities/config/issue-text.ts";
import {
  operatorPolicySchema,
  type OperatorPolicy,
  type OperatorProvider,
} from "../activities/config/operator-policy.ts";
import type { KeyDefinitions } from "../activities/config/key-settings.ts";
import type { ProviderConfig } from "../activities/config/model-target.ts";
import { WrongSettings } from "../temporal/service-missing.ts";

/** @throws WrongSettings that names each wrong key: a worker without its policy does not start */
export function readPolicy(path: string): OperatorPolicy {
  const wrong = (why: string) =>
    new WrongSettings(`LONGHAUL_POLICY=${path} cannot be used; nothing was started.\n${why}`);
  let content: unknown;
  try {
    content = parse(readFileSync(path, "utf8"));
  } catch (error) {
    throw wrong((error as Error).message);
  }
  const result = operatorPolicySchema.safeParse(content ?? {});
  if (result.success) return result.data;
  throw wrong(issueTexts(result.error, operatorPolicySchema).join("\n"));
}

/** The providers that a policy file places, without their identities; none if the file is wrong, which its worker says. */
export function placedProviders(path: string): Record<string, ProviderConfig> {
  try {
    const placed = Object.entries(readPolicy(path).providers ?? {});
    return Object.fromEntries(placed.map(([name, provider]) => [name, withoutAuth(provider)]));
  } catch (error) {
    if (error instanceof WrongSettings) return {};
    throw error;
  }
}

/** The keys that a policy file defines; none if the file is wrong, which its worker says. */
export function policyKeys(path: string): KeyDefinitions {
  try {
    return readPolicy(path).keys ?? {};
  } catch (error) {
    if (error instanceof WrongSettings) return {};
    throw error;
  }
}

function withoutAuth({ auth, ...provider }: OperatorProvider): ProviderConfig {
  return auth === undefined ? provider : { ...provider };
}
