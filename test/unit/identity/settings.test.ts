import { expect, it } from "vitest";
import { agentConfigSchema } from "../../../activities/config/agent-config.ts";
import { issueTexts } from "../../../activities/config/issue-text.ts";
import { resolveModel } from "../../../activities/config/models.ts";
import { modelRefusal, operatorPolicySchema } from "../../../activities/config/operator-policy.ts";
import { modelTargetSchema } from "../../../activities/config/model-target.ts";
import { configOf } from "../../support/run-config.ts";

const POLICY = {
  providers: {
    bedrock: { preset: "bedrock-claude", region: "eu-central-1", auth: { kind: "aws-bedrock" } },
    "bedrock-open": {
      preset: "bedrock-open",
      region: "us-east-1",
      auth: { kind: "aws-bedrock", profile: "ml" },
    },
    vertex: { preset: "vertex-gemini", project: "p1", region: "europe-west4", auth: { kind: "google" } },
    "vertex-c": { preset: "vertex-claude", project: "p1", region: "global", auth: { kind: "google" } },
    "azure-id": { preset: "azure", resource: "r1", auth: { kind: "azure" } },
    corp: {
      baseUrl: "https://llm.corp.example/v1",
      api: "chat",
      auth: { kind: "command", command: ["/usr/local/bin/llm-token"], for: "10m" },
    },
  },
};

const wrongIn = (providers: object) => {
  const { error } = operatorPolicySchema.safeParse({ providers });
  return error === undefined ? [] : issueTexts(error, operatorPolicySchema);
};

it("a policy file takes each kind of identity", () => {
  const { providers = {} } = operatorPolicySchema.parse(POLICY);
  expect(Object.keys(providers)).toEqual(Object.keys(POLICY.providers));
  expect(providers["corp"]?.auth).toMatchObject({ for: 600_000, pass: [] });
});

it.each([
  [
    "a preset without its region",
    { a: { preset: "bedrock-claude", auth: { kind: "aws-bedrock" } } },
    "needs region",
  ],
  ["no address", { a: { auth: { kind: "google" } } }, "preset or baseUrl"],
  [
    "a key beside an identity",
    { a: { baseUrl: "https://a.example", keyEnv: "A_API_KEY", auth: { kind: "google" } } },
    "not both",
  ],
  ["an unknown kind", { a: { baseUrl: "https://a.example", auth: { kind: "oidc" } } }, "kind"],
  [
    "a region that is an address",
    { a: { preset: "bedrock-open", region: "x.evil.example/", auth: { kind: "aws-bedrock" } } },
    "region",
  ],
  [
    "a command with a shell's line",
    { a: { baseUrl: "https://a.example", auth: { kind: "command", command: "token | head" } } },
    "command",
  ],
])("a policy file with %s is refused", (_, providers, said) => {
  expect(wrongIn(providers).join("\n")).toContain(said);
});

it("an identity in a longhaul.yaml or a session's settings is refused, with where it belongs", () => {
  const given = { providers: { bedrock: POLICY.providers.bedrock } };
  const { error } = agentConfigSchema.safeParse(given);
  expect(error && issueTexts(error, agentConfigSchema).join("\n")).toContain("LONGHAUL_POLICY");
  const { bedrock } = POLICY.providers;
  const target = { model: "bedrock/x", contextWindow: 1, maxOutput: 1, api: "chat", input: [] };
  expect(modelTargetSchema.safeParse({ ...target, provider: { name: "bedrock", ...bedrock } }).success).toBe(
    false,
  );
});

it.each([
  ["bedrock-claude/anthropic.claude-opus-4-6-v1", "anthropic/claude-opus-4-6"],
  ["bedrock-claude/eu.anthropic.claude-opus-4-6-v1:0", "anthropic/claude-opus-4-6"],
  ["bedrock-claude/global.anthropic.claude-haiku-4-5-20251001-v1:0", "anthropic/claude-haiku-4-5"],
  ["vertex-claude/claude-haiku-4-5@20251001", "anthropic/claude-haiku-4-5"],
  ["vertex-gemini/gemini-2.5-pro", "google/gemini-2.5-pro"],
])("%s has the price of %s", (name, known) => {
  const of = (model: string) => {
    const found = resolveModel(model, agentConfigSchema.parse({}));
    return found.ok ? found.model : undefined;
  };
  expect(of(known)?.price).toBeDefined();
  expect(of(name)).toMatchObject({ price: of(known)?.price, contextWindow: of(known)?.contextWindow });
});

it("a rule on models knows an operator's provider by its name, wherever a session says it is", () => {
  const policy = operatorPolicySchema.parse({ ...POLICY, models: ["corp/*"] });
  const target = (name: string) => {
    const config = agentConfigSchema.parse({
      providers: { [name]: { baseUrl: "https://elsewhere.example" } },
    });
    const found = resolveModel(`${name}/m`, config);
    return configOf({}, found.ok ? found.model : {});
  };
  expect(modelRefusal(policy, target("corp"))).toBeUndefined();
  expect(modelRefusal(policy, target("other"))).toMatchObject({ rule: "models" });
});
