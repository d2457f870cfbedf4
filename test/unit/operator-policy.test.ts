import { expect, test } from "vitest";
import { agentConfigSchema } from "../../activities/config/agent-config.ts";
import { operatorPolicySchema, policyRefusal } from "../../activities/config/operator-policy.ts";
import { exitCodeOf } from "../../client/console/errors.ts";

type Asked = Partial<Record<"sandbox" | "limits", Record<string, unknown>>>;

function ruleAgainst(policy: object, asked: Asked = {}): string | undefined {
  const { sandbox, limits } = agentConfigSchema.parse(asked);
  const session = { sandbox: { ...sandbox, ...asked.sandbox }, limits };
  return policyRefusal(operatorPolicySchema.parse(policy), session as never)?.rule;
}

test("an empty policy allows what the defaults ask for, and everything else", () => {
  expect(ruleAgainst({})).toBeUndefined();
  expect(ruleAgainst({}, { sandbox: { memory: "64g", network: "bridge" } })).toBeUndefined();
});

test.each<[string, object, Asked, Asked]>([
  [
    "images",
    { images: ["longhaul-sandbox:*", "r.example.com/a@sha256:12*"] },
    { sandbox: { image: "longhaul-sandbox.evil:4" } },
    { sandbox: { image: "r.example.com/a@sha256:1234" } },
  ],
  ["runtimes", { runtimes: ["runsc"] }, {}, { sandbox: { runtime: "runsc" } }],
  ["networks", { networks: ["none"] }, { sandbox: { network: "listed" } }, { sandbox: { network: "none" } }],
  [
    "allow",
    { allow: ["10.1.0.0/16"] },
    { sandbox: { allow: ["10.0.0.0/8"] } },
    { sandbox: { allow: ["10.1.2.0/24"] } },
  ],
  [
    "allow",
    { allow: ["npm.example.com"] },
    { sandbox: { registries: { npm: ["https://other.example.com/"] } } },
    { sandbox: { registries: { npm: ["https://npm.example.com/"] } } },
  ],
  [
    "max.memory",
    { max: { memory: "2g" } },
    { sandbox: { memory: "2049m" } },
    { sandbox: { memory: "2048m" } },
  ],
  ["max.cpus", { max: { cpus: 1 } }, { sandbox: { cpus: 1.5 } }, { sandbox: { cpus: 1 } }],
  ["max.pids", { max: { pids: 100 } }, {}, { sandbox: { pids: 100 } }],
  ["max.disk", { max: { disk: "5g" } }, { sandbox: { disk: "6g" } }, { sandbox: { disk: "5g" } }],
  ["max.steps", { max: { steps: 300 } }, {}, { limits: { maxSteps: 300 } }],
  ["max.costUsd", { max: { costUsd: 5 } }, {}, { limits: { maxCostUsd: 5 } }],
])("%s refuses what goes beyond it, and takes what does not", (rule, policy, beyond, within) => {
  expect(ruleAgainst(policy, beyond)).toBe(rule);
  expect(ruleAgainst(policy, within)).toBeUndefined();
});

test("what a policy refuses counts as wrong usage", () => {
  expect(exitCodeOf("failed", { failure: "PolicyRefused" })).toBe(2);
});
