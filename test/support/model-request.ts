/** Requests for tests of the model adapter: what a step would send, with short deadlines. */
import type { AssistantPart, Message, ToolResultPart } from "../../activities/contract/message.ts";
import { createAiSdkModel } from "../../activities/model/ai-sdk.ts";
import type { Endpoint } from "../../activities/model/endpoint.ts";
import type { ModelTarget } from "../../activities/config/model-target.ts";
import type { ModelAnswer, ModelDelta, ModelRequest } from "../../activities/model/model.ts";
import type { ToolSpec } from "../../activities/contract/tools.ts";
import { onTestFinished } from "vitest";
import {
  startScriptedModel,
  type ModelScript,
  type ScriptedModelOptions,
  type ScriptedModelServer,
} from "./scripted-model.ts";
import { askedAs } from "./run-config.ts";

export const bashTool: ToolSpec = {
  name: "bash",
  description: "Runs a command.",
  inputSchema: { type: "object", properties: { command: { type: "string" } }, required: ["command"] },
};

export const user = (text: string): Message => ({ role: "user", content: [{ type: "text", text }] });
export const assistant = (...content: AssistantPart[]): Message => ({ role: "assistant", content });
export const toolResult = (
  toolCallId: string,
  text: string,
  more: Partial<ToolResultPart> = {},
): Message => ({
  role: "tool",
  content: [{ type: "tool-result", toolCallId, toolName: "bash", outcome: "completed", text, ...more }],
});

/** Of a request, with the model's settings added. */
export type RequestParts = Partial<Omit<ModelRequest, "target"> & ModelTarget>;

export function modelRequest({
  system = "You are a coding agent.",
  messages = [user("Make it so.")],
  tools = [bashTool],
  maxOutputTokens = 1_000,
  cacheKey = "session-1",
  deadlines = { connectMs: 5_000, firstTokenMs: 5_000, silenceMs: 5_000, answerMs: 60_000 },
  noCalls,
  estimatedTokens,
  ...target
}: RequestParts = {}): ModelRequest {
  return {
    target: {
      ...askedAs(target.model ?? (target.api === "chat" ? "openai/gpt-4o" : "openai/o3")),
      api: "responses",
      contextWindow: 200_000,
      maxOutput: 16_000,
      input: ["text", "image", "pdf"],
      ...target,
    },
    system,
    messages,
    tools,
    maxOutputTokens,
    cacheKey,
    deadlines,
    noCalls,
    estimatedTokens,
  };
}

/** Closed after the test, which fails if a request had no answer in the script. */
export async function play(
  script: ModelScript,
  options?: ScriptedModelOptions,
): Promise<ScriptedModelServer> {
  const server = await startScriptedModel(script, options);
  onTestFinished(() => server.close());
  return server;
}

export interface Asked {
  readonly answer: ModelAnswer;
  readonly deltas: readonly ModelDelta[];
}

/** Asks the model at `baseUrl` once. */
export async function ask(
  baseUrl: string,
  request: RequestParts = {},
  signal: AbortSignal = new AbortController().signal,
): Promise<Asked> {
  const deltas: ModelDelta[] = [];
  const model = createAiSdkModel({
    environment: { OPENAI_API_KEY: "sk-test-secret", OPENAI_BASE_URL: baseUrl },
    mask: (text) => text.replaceAll("sk-test-secret", "***"),
  });
  const answer = await model.ask(modelRequest(request), (delta) => deltas.push(delta), signal);
  return { answer, deltas };
}

/** Whom a request goes to, and what comes back, where neither matters. */
export const someEndpoint: Endpoint = {
  modelId: "m",
  apiKey: "k",
  baseUrl: "https://x.example",
  headers: {},
  query: {},
};
export const someAnswer: ModelAnswer = {
  content: [],
  finish: "stop",
  usage: undefined,
  firstTokenMs: 1,
  durationMs: 1,
};
