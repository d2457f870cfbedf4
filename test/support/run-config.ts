/** A run's configuration for tests: gpt-4o and the defaults of `longhaul.yaml`. */
import { agentConfigSchema, type RunConfig } from "../../activities/config/agent-config.ts";

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
  const { context, sandbox, limits } = agentConfigSchema.parse(file);
  return {
    model: "openai/gpt-4o",
    contextWindow: 128_000,
    maxOutput: 4_000,
    api: "responses",
    input: ["text", "image"],
    context,
    tools: {},
    sandbox,
    limits,
    ...changes,
  };
}
