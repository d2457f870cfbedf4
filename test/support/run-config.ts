/** A run's configuration for tests: gpt-4o and the defaults of `longhaul.yaml`. */
import { agentConfigSchema, type RunConfig } from "../../activities/config/agent-config.ts";

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
