/** How a person configures each server that can be played: its provider in longhaul.yaml, and one of its models. Data. */
import type { RunConfig } from "../../../activities/config/agent-config.ts";
import type { ModelTarget, ProviderConfig } from "../../../activities/config/model-target.ts";
import { findProvider } from "../../../activities/config/providers.ts";
import type { DialectName } from "../model-server/dialects/dialects.ts";

/** Variable of the direct agent's worker. */
const KEY = "TEST_API_KEY";
export const WINDOW_TOKENS = 64_000;
export const MAX_OUTPUT_TOKENS = 8_000;

export interface DialectTarget {
  readonly provider: string;
  /** Without its address. */
  readonly config: ProviderConfig;
  readonly model: string;
  /** The model's thoughts: sent back to it, only shown, or never shown. */
  readonly thoughts: "returned" | "seen" | "none";
  /** The model reasons, although its wire may not show it. */
  readonly thinks: boolean;
  /** Its 429 states how long to wait. */
  readonly tellsWait: boolean;
}

const thinking = { thoughts: "returned", thinks: true, tellsWait: true } as const;
const seen = { ...thinking, thoughts: "seen" } as const;
const hidden = { ...thinking, thoughts: "none" } as const;
const keyed: ProviderConfig = { keyEnv: KEY };
const chat: ProviderConfig = { ...keyed, api: "chat" };
const local: ProviderConfig = {};
const azure: ProviderConfig = { headersEnv: { "api-key": KEY } };

export const TARGETS: Readonly<Record<DialectName, DialectTarget>> = {
  openai: { provider: "openai", config: { ...keyed, api: "responses" }, model: "gpt-6-sol", ...thinking },
  "openai-chat": { provider: "openai", config: chat, model: "gpt-6-sol", ...hidden },
  anthropic: { provider: "anthropic", config: keyed, model: "claude-sonnet-5", ...thinking },
  gemini: { provider: "google", config: keyed, model: "gemini-3.8-flash", ...thinking },
  openrouter: { provider: "openrouter", config: keyed, model: "anthropic/claude-sonnet-5", ...thinking },
  azure: { provider: "azure", config: { ...azure, api: "responses" }, model: "our-deployment", ...thinking },
  "azure-classic": {
    provider: "azure",
    config: { ...azure, api: "chat", query: { "api-version": "2024-10-21" } },
    model: "gpt-4o",
    ...hidden,
    thinks: false,
  },
  litellm: { provider: "proxy", config: chat, model: "our-model", ...seen, tellsWait: false },
  deepseek: { provider: "deepseek", config: keyed, model: "deepseek-v4-pro", ...thinking },
  kimi: {
    provider: "moonshot",
    config: { ...chat, options: { sendReasoning: "field" } },
    model: "kimi-k3",
    ...thinking,
  },
  glm: {
    provider: "zai",
    config: { ...chat, options: { sendReasoning: "field" } },
    model: "glm-5.3",
    ...thinking,
    tellsWait: false,
  },
  groq: { provider: "groq", config: keyed, model: "openai/gpt-oss-120b", ...seen },
  together: { provider: "together", config: chat, model: "openai/gpt-oss-120b", ...seen },
  mistral: {
    provider: "mistral",
    config: keyed,
    model: "devstral-latest",
    ...hidden,
    thinks: false,
    tellsWait: false,
  },
  "gemini-compatible": {
    provider: "gemini-compatible",
    config: chat,
    model: "gemini-3.8-flash",
    ...thinking,
    thoughts: "none",
  },
  vllm: { provider: "vllm", config: local, model: "openai/gpt-oss-120b", ...seen },
  "vllm-responses": {
    provider: "vllm",
    config: { ...local, api: "responses" },
    model: "openai/gpt-oss-120b",
    ...thinking,
  },
  ollama: { provider: "ollama", config: local, model: "qwen3:32b", ...seen },
  lmstudio: { provider: "lmstudio", config: local, model: "openai/gpt-oss-20b", ...seen },
  llamacpp: { provider: "llamacpp", config: local, model: "gpt-oss-20b", ...seen },
};

/** What a session stores about the model, with the server at `baseUrl`. */
export function targetAt(
  name: DialectName,
  baseUrl: string,
): ModelTarget & Pick<RunConfig, "modelName" | "input"> {
  const { provider, config, model, thinks } = TARGETS[name];
  const full = `${provider}/${model}`;
  const found = findProvider(full, { [provider]: { ...config, baseUrl } }, { [KEY]: "there" });
  if (found === undefined) throw new Error(`There is no provider ${provider}.`);
  return {
    model: full,
    modelName: found.modelName,
    provider: found.provider,
    api: found.api,
    contextWindow: WINDOW_TOKENS,
    maxOutput: MAX_OUTPUT_TOKENS,
    input: ["text", "image"],
    thinks,
  };
}
