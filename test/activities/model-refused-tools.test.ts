/** Providers refuse a whole request for one tool's schema: the session goes on without a foreign one. */
import { expect, it } from "vitest";
import type { ToolSpec } from "../../activities/contract/tools.ts";
import { createAiSdkModel } from "../../activities/model/ai-sdk.ts";
import type { ModelAnswer } from "../../activities/model/model.ts";
import { modelRequest, play, type RequestParts } from "../support/model-request.ts";
import type { ReplyPart } from "../support/model-server/wire.ts";
import { scriptedModel, text } from "../support/scripted-model.ts";

const environment = {
  OPENAI_API_KEY: "sk-test-secret",
  ANTHROPIC_API_KEY: "sk-test-secret",
};
const served = { window: 200_000, maxOutput: 64_000, reasoning: true } as const;

const tool = (name: string, properties: object, more: Partial<ToolSpec> = {}): ToolSpec => ({
  name,
  description: "Does it.",
  inputSchema: { type: "object", properties },
  ...more,
});
const plain = { id: { type: "string" } };
/** Its name is one that Anthropic refuses, its list one that OpenAI does. */
const refused = { "from<": { type: "array" } };
const foreign = { isForeign: true } as const;

const WIRES = {
  responses: { api: "responses", model: "openai/o3", provider: "openai" },
  chat: { api: "chat", model: "openai/o3", provider: "openai" },
  messages: { api: "messages", model: "anthropic/claude-sonnet-5", provider: "anthropic" },
} as const;

async function asking(wire: keyof typeof WIRES, answers: number, ...last: readonly ReplyPart[]) {
  const { provider, model, api } = WIRES[wire];
  const modelName = model.split("/")[1] ?? "";
  const script = scriptedModel();
  for (let one = 0; one < answers; one += 1) script.says("Hi.");
  if (last.length > 0) script.answers(...last);
  const server = await play(script, { dialect: provider, models: { [modelName]: served } });
  const keyEnv = `${provider.toUpperCase()}_API_KEY`;
  const place = { name: provider, baseUrl: server.baseUrl, keyEnv };
  const target: RequestParts = { model, modelName, api, provider: place };
  const port = createAiSdkModel({ environment, mask: (text) => text });
  const ask = (tools: readonly ToolSpec[]): Promise<ModelAnswer> =>
    port.ask(modelRequest({ ...target, tools }), () => undefined, new AbortController().signal);
  return { ask, statuses: () => server.log.map(({ status }) => status) };
}

it.each(["responses", "chat", "messages"] as const)(
  "on the %s wire it is asked without those that are refused, and knows them the next time",
  async (wire) => {
    const { ask, statuses } = await asking(wire, 2);
    const tools = [
      tool("bash", plain),
      tool("docs__good", plain, foreign),
      tool("docs__bad", refused, foreign),
      tool("docs__other", plain, foreign),
      tool("docs__worse", refused, foreign),
    ];
    const names = ["docs__bad", "docs__worse"];
    expect((await ask(tools)).refusedTools).toEqual(names);
    expect(statuses()).toEqual([400, 400, 200]);
    expect((await ask(tools)).refusedTools).toEqual(names);
    expect(statuses()).toEqual([400, 400, 200, 200]);
  },
);

it("fails for one of our own, which no session can do without", async () => {
  const { ask, statuses } = await asking("responses", 0);
  await expect(ask([tool("bash", refused), tool("docs__good", plain, foreign)])).rejects.toMatchObject({
    class: "rejected",
    message: expect.stringContaining("Invalid schema for function 'bash'"),
  });
  expect(statuses()).toEqual([400]);
});

it("says nothing of tools that are taken, and leaves other refusals alone", async () => {
  const { ask, statuses } = await asking("responses", 1);
  expect(await ask([tool("docs__good", plain, foreign)])).not.toHaveProperty("refusedTools");
  await expect(ask([tool("docs good", plain)])).rejects.toMatchObject({ class: "rejected" });
  expect(statuses()).toEqual([200, 400]);
});

it("is not asked again after the first words of an answer", async () => {
  const error = {
    type: "error",
    code: "invalid_prompt",
    message: "The grammar of its tools is too large.",
  } as const;
  const { ask, statuses } = await asking("responses", 0, text("Well,"), error);
  await expect(ask([tool("docs__good", plain, foreign)])).rejects.toMatchObject({ class: "rejected" });
  expect(statuses()).toEqual([200]);
});
