import { expect, it } from "vitest";
import { agentConfigSchema, runConfigSchema } from "../../../activities/config/agent-config.ts";
import { besidesModel, modelOf, withFallback } from "../../../activities/config/asked-model.ts";
import { askedAs } from "../../support/run-config.ts";

const { context, sandbox, limits, instructions, skills, questions, permissions } = agentConfigSchema.parse(
  {},
);
const target = (model: string) => ({
  ...askedAs(model),
  contextWindow: 32_000,
  maxOutput: 2_000,
  api: "responses" as const,
  input: ["text" as const],
});
const config = runConfigSchema.parse({
  ...target("openai/own"),
  context,
  tools: {},
  sandbox,
  limits,
  instructions,
  skills,
  questions,
  permissions,
  systemPrompt: "You are X.",
  fallback: [target("openai/other")],
});

it("splits a configuration into the model's and the rest, by the schema", () => {
  expect({ ...modelOf(config), ...besidesModel(config) }).toEqual(config);
  expect(Object.keys(besidesModel(config))).not.toContain("contextWindow");
});

it("keeps every setting of the session if a fallback model answers", () => {
  const asked = withFallback(config, 1);
  expect(asked.model).toBe("openai/other");
  expect(besidesModel(asked)).toEqual(besidesModel(config));
});
