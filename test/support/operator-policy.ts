import { onTestFinished } from "vitest";
import { operatorPolicySchema } from "../../activities/config/operator-policy.ts";
import type { AgentHarness } from "./agent-harness.ts";

/** Puts an agent under an operator's policy, as in the policy's file, until the test ends. */
export function underPolicy({ deps }: Pick<AgentHarness, "deps">, policy: object): void {
  Object.assign(deps, { policy: operatorPolicySchema.parse(policy) });
  onTestFinished(() => void Object.assign(deps, { policy: undefined }));
}
