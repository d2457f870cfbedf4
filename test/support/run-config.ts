/** A run's configuration for tests: gpt-4o and the defaults of `longhaul.yaml`. */
import { agentConfigSchema, type RunConfig } from "../../activities/config/agent-config.ts";
import type { ModelTarget, Provider } from "../../activities/config/model-target.ts";

/** OpenAI, or the server of OPENAI_BASE_URL, as each test of a whole agent has one. */
const OPENAI: Provider = { name: "openai", keyEnv: "OPENAI_API_KEY", baseUrlEnv: "OPENAI_BASE_URL" };

/** Who is asked for `provider/model`: a server that knows OpenAI's models by their own names, and others by the whole. */
export const askedAs = (model: string): Pick<ModelTarget, "model" | "modelName" | "provider"> => ({
  model,
  modelName: model.replace(/^openai\//, ""),
  provider: OPENAI,
});

type Blocks = Pick<RunConfig, "context" | "limits" | "sandbox">;

/** Settings that override others; those of the three blocks one by one. */
export type ConfigChanges = Partial<Omit<RunConfig, keyof Blocks>> & {
  readonly [Name in keyof Blocks]?: Partial<Blocks[Name]>;
};

/** A function where a setting depends on the others. */
export type ConfigChange = ConfigChanges | ((config: RunConfig) => RunConfig);

export function changedConfig(config: RunConfig, change: ConfigChange = {}): RunConfig {
  if (typeof change === "function") return change(config);
  return {
    ...config,
    ...(change.model === undefined ? {} : askedAs(change.model)),
    ...change,
    context: { ...config.context, ...change.context },
    limits: { ...config.limits, ...change.limits },
    sandbox: { ...config.sandbox, ...change.sandbox },
  };
}

/** @param file settings as in `longhaul.yaml` @param changes resolved settings that override the others */
export function configOf(
  file: Parameters<typeof agentConfigSchema.parse>[0],
  changes: Partial<RunConfig> = {},
): RunConfig {
  const { context, sandbox, limits, instructions, skills, questions, permissions } =
    agentConfigSchema.parse(file);
  return {
    ...askedAs(changes.model ?? "openai/gpt-4o"),
    contextWindow: 128_000,
    maxOutput: 4_000,
    api: "responses",
    input: ["text", "image"],
    context,
    tools: {},
    sandbox,
    limits,
    instructions,
    skills,
    questions,
    permissions,
    ...changes,
  };
}
