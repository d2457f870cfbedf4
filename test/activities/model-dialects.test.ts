/** Sessions with servers as people use them: what each sends is read, and what is sent back is taken. */
import { describe, expect, it } from "vitest";
import type { Message, ToolCallPart } from "../../activities/contract/message.ts";
import type { Api, ProviderConfig } from "../../activities/config/model-target.ts";
import { findProvider } from "../../activities/config/providers.ts";
import { createAiSdkModel } from "../../activities/model/ai-sdk.ts";
import type { ModelAnswer } from "../../activities/model/model.ts";
import { acceptedSchema } from "../../activities/tools/accepted-schema.ts";
import { DOT_PNG } from "../support/images.ts";
import {
  assistant,
  bashTool,
  modelRequest,
  play,
  type RequestParts,
  toolResult,
  user,
} from "../support/model-request.ts";
import type { DialectName } from "../support/model-server/dialects/dialects.ts";
import { call, scriptedModel, text, thought, type ModelScript } from "../support/scripted-model.ts";

interface Row {
  /** How people name it. */
  readonly provider: string;
  readonly model: string;
  readonly api?: Api;
  readonly query?: Readonly<Record<string, string>>;
}

const SERVERS: Readonly<Partial<Record<DialectName, Row>>> = {
  openai: { provider: "openai", model: "o3" },
  azure: { provider: "azure", model: "o3" },
  "azure-classic": { provider: "azure", model: "o3", api: "chat", query: { "api-version": "2024-10-21" } },
  openrouter: { provider: "openrouter", model: "o3" },
  vllm: { provider: "vllm", model: "o3" },
  "vllm-responses": { provider: "vllm", model: "o3", api: "responses" },
  ollama: { provider: "ollama", model: "o3" },
  lmstudio: { provider: "lmstudio", model: "o3" },
  llamacpp: { provider: "llamacpp", model: "o3" },
  litellm: { provider: "litellm", model: "o3", api: "chat" },
  deepseek: { provider: "deepseek", model: "deepseek-v4-pro" },
  kimi: { provider: "kimi", model: "kimi-k3", api: "chat" },
  glm: { provider: "glm", model: "glm-5.3", api: "chat" },
  groq: { provider: "groq", model: "openai/gpt-oss-120b" },
  together: { provider: "together", model: "openai/gpt-oss-120b", api: "chat" },
  mistral: { provider: "mistral", model: "devstral-latest" },
  "gemini-compatible": { provider: "gemini", model: "gemini-3.8-flash", api: "chat" },
  anthropic: { provider: "anthropic", model: "claude-sonnet-5" },
  gemini: { provider: "google", model: "gemini-3.8-flash" },
};

const KEYS = [
  "OPENAI",
  "ANTHROPIC",
  "GOOGLE_GENERATIVE_AI",
  "AZURE",
  "OPENROUTER",
  "GROQ",
  "MISTRAL",
  "DEEPSEEK",
  "ACME",
];
const environment = Object.fromEntries(KEYS.map((name) => [`${name}_API_KEY`, "sk-test-secret"]));

/** Of an MCP server, with what one provider or another refuses. */
const lookUp = {
  name: "wiki__look_up",
  description: "Looks something up.",
  inputSchema: acceptedSchema({
    properties: {
      where: { enum: ["here", "there"] },
      who: { $ref: "#/definitions/person", description: "Whom." },
      filter: { type: "object", anyOf: [{ properties: { id: { type: "string" } } }, { required: ["name"] }] },
      limit: { type: "integer", exclusiveMinimum: 0 },
      kind: { const: "page" },
    },
    required: ["where"],
    definitions: { person: { type: "string", description: "A name." } },
  }).inputSchema,
};

async function sessionWith(dialect: DialectName, row: Row, script: ModelScript) {
  const served = { window: 200_000, maxOutput: 64_000, input: ["text", "image"], reasoning: true } as const;
  const server = await play(script, { dialect, models: { [row.model]: served } });
  const { provider: name, model, api, query } = row;
  const known = findProvider(`${name}/${model}`, {}, environment) !== undefined;
  const config: ProviderConfig = {
    baseUrl: server.baseUrl,
    keyEnv: known ? undefined : "ACME_API_KEY",
    api,
    query,
  };
  const found = findProvider(`${name}/${model}`, { [name]: config }, environment);
  if (found === undefined) throw new Error(`no provider ${name}`);
  const target: RequestParts = {
    model: `${name}/${model}`,
    modelName: model,
    provider: found.provider,
    api: found.api,
    thinks: true,
    tools: [bashTool, lookUp],
  };
  const port = createAiSdkModel({ environment, mask: (said) => said });
  const ask = (messages: readonly Message[], more: RequestParts = {}): Promise<ModelAnswer> =>
    port.ask(modelRequest({ ...target, messages, ...more }), () => undefined, new AbortController().signal);
  return { server, ask };
}

const callIn = ({ content }: ModelAnswer) =>
  content.find((part) => part.type === "tool-call") as ToolCallPart;
/** As it comes back from Postgres. */
const stored = (answer: ModelAnswer) =>
  assistant(...(JSON.parse(JSON.stringify(answer.content)) as typeof answer.content));

describe.each(Object.entries(SERVERS) as [DialectName, Row][])("%s", (dialect, row) => {
  it("takes a session with thoughts, calls, an image, an interrupt and a wrap-up", async () => {
    const { server, ask } = await sessionWith(
      dialect,
      row,
      scriptedModel()
        .answers(thought("First, look."), call("bash", { command: "ls" }), call("bash", { command: "pwd" }))
        .answers(thought("Then, read."), text("Now."), call("bash", { command: "cat a" }))
        .says("Half an ans")
        .says("Go.")
        .says("Done."),
    );
    const messages: Message[] = [user("Make it so.")];
    const first = await ask(messages);
    const calls = first.content.filter((part) => part.type === "tool-call");
    expect(calls).toMatchObject([{ input: { command: "ls" } }, { input: { command: "pwd" } }]);
    expect(first.finish).toBe("tool-calls");
    messages.push(stored(first));
    const file = {
      type: "file",
      mediaType: "image/png",
      data: `data:image/png;base64,${DOT_PNG.toString("base64")}`,
    } as const;
    const [list, folder] = calls;
    messages.push(
      toolResult(list?.toolCallId ?? "", "shown", { files: [file] }),
      toolResult(folder?.toolCallId ?? "", "/w"),
    );
    const second = await ask(messages);
    messages.push(stored(second), toolResult(callIn(second).toolCallId, "A"));
    messages.push({ role: "user", content: [{ type: "text", text: "And this?" }, file] });
    expect((await ask(messages)).content).toContainEqual(expect.objectContaining({ text: "Half an ans" }));
    messages.push(assistant({ type: "text", text: "Half an ans [interrupted]" }));
    const fourth = await ask(messages);
    messages.push(stored(fourth));
    const last = await ask(messages, { noCalls: true });
    expect(last).toMatchObject({ finish: "stop" });
    expect(last.usage?.input).toBeGreaterThan(0);
    expect(server.remaining).toBe(0);
  });
});
