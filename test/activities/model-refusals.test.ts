/** What a provider refuses of a request, and a session can do without: it is asked once more, and knows it the next time. */
import { expect, it } from "vitest";
import type { AssistantPart } from "../../activities/contract/message.ts";
import type { ToolSpec } from "../../activities/contract/tools.ts";
import { createAiSdkModel } from "../../activities/model/ai-sdk.ts";
import type { ModelAnswer } from "../../activities/model/model.ts";
import {
  assistant,
  modelRequest,
  play,
  toolResult,
  user,
  type RequestParts,
} from "../support/model-request.ts";
import type { ServedModel } from "../support/model-server/wire.ts";
import {
  call,
  scriptedModel,
  text,
  thought,
  type ModelScript,
  type Turn,
} from "../support/scripted-model.ts";

const openai = { dialect: "openai", model: "openai/o3", keyEnv: "OPENAI_API_KEY" } as const;
const WIRES = {
  responses: openai,
  chat: openai,
  messages: { dialect: "anthropic", model: "anthropic/claude-sonnet-5", keyEnv: "ANTHROPIC_API_KEY" },
  gemini: { dialect: "gemini", model: "google/gemini-3.8-flash", keyEnv: "GOOGLE_GENERATIVE_AI_API_KEY" },
} as const;
const environment = Object.fromEntries(Object.values(WIRES).map(({ keyEnv }) => [keyEnv, "sk-test-secret"]));

/** A server of this wire, and one worker that asks it. @param name of another model than the wire's own */
async function asking(
  api: keyof typeof WIRES,
  script: ModelScript,
  more: Partial<ServedModel> = {},
  name?: string,
) {
  const { dialect, keyEnv, model: own } = WIRES[api];
  const model = name === undefined ? own : `${dialect}/${name}`;
  const modelName = model.split("/")[1] ?? "";
  const served = { window: 200_000, maxOutput: 64_000, reasoning: true, signatures: true, ...more };
  const server = await play(script, { dialect, models: { [modelName]: served } });
  const provider = { name: dialect, baseUrl: server.baseUrl, keyEnv };
  const port = createAiSdkModel({ environment, mask: (said) => said });
  const ask = (request: RequestParts): Promise<ModelAnswer> =>
    port.ask(
      modelRequest({ model, modelName, api, provider, ...request }),
      () => undefined,
      new AbortController().signal,
    );
  return { server, ask, statuses: () => server.log.map(({ status }) => status) };
}

it.each(["responses", "chat", "messages", "gemini"] as const)(
  "more output than a model writes, on the %s wire: it is asked for what its provider says",
  async (api) => {
    const script = scriptedModel().says("One.").says("Two.");
    const some = { maxOutput: 4_000, reasoning: false };
    const { server, ask, statuses } = await asking(api, script, some, "some");
    const request = { maxOutputTokens: 32_768, reasoning: { summary: "none" }, thinks: false } as const;
    await ask(request);
    await ask(request);
    expect(statuses()).toEqual([400, 200, 200]);
    expect(server.requests.map(({ maxOutputTokens }) => maxOutputTokens)).toEqual([4_000, 4_000]);
  },
);

/** As another account's key would find it. */
const unreadable = (content: readonly AssistantPart[]): AssistantPart[] =>
  JSON.parse(
    JSON.stringify(content, (key, value: unknown) =>
      /encrypted|signature/i.test(key) && typeof value === "string" ? `${value.slice(0, -6)}AAAAAA` : value,
    ),
  ) as AssistantPart[];

it.each(["responses", "messages", "gemini"] as const)(
  "thoughts that the provider cannot read any more, on the %s wire: what came since is sent",
  async (api) => {
    const script = scriptedModel();
    for (const command of ["ls", "pwd", "id"])
      script.answers(thought("Hm, a look."), call("bash", { command }));
    const { server, ask, statuses } = await asking(api, script);
    const next = (messages: RequestParts["messages"] = []) =>
      ask({ reasoning: { effort: "low" }, thinks: true, messages: [user("Look."), ...messages] });
    const idOf = ({ content }: ModelAnswer) =>
      content.flatMap((part) => (part.type === "tool-call" ? [part.toolCallId] : []))[0] ?? "";
    const first = await next();
    const turn = [assistant(...unreadable(first.content)), toolResult(idOf(first), "a.txt")];
    const second = await next(turn);
    const why = expect.stringMatching(/refuses the request \(400\): .*(verified|signature)/i);
    expect(second.refusedParts).toEqual([{ mediaType: "thoughts", why, isNew: true }]);
    expect(statuses()).toEqual([200, 400, 200]);
    const third = await next([...turn, assistant(...second.content), toolResult(idOf(second), "/workspace")]);
    expect(third.refusedParts).toEqual([{ mediaType: "thoughts", why, isNew: false }]);
    expect(statuses()).toEqual([200, 400, 200, 200]);
    expect(JSON.stringify(server.requests.at(-1)?.raw)).toMatch(/encrypted_content|ignature/);
  },
);

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
const good = tool("docs__good", plain, foreign);

it.each(["responses", "chat", "messages"] as const)(
  "the schemas of foreign tools, on the %s wire: it is asked without these",
  async (api) => {
    const { ask, statuses } = await asking(api, scriptedModel().says("Hi.").says("Hi."));
    const names = ["docs__bad", "docs__worse"];
    const bad = names.map((name) => tool(name, refused, foreign));
    const tools = [tool("bash", plain), good, ...bad, tool("docs__other", plain, foreign)];
    expect((await ask({ tools })).refusedTools).toEqual(names);
    expect(statuses()).toEqual([400, 400, 200]);
    expect((await ask({ tools })).refusedTools).toEqual(names);
    expect(statuses()).toEqual([400, 400, 200, 200]);
  },
);

it("fails for the schema of a tool of our own, which no session can do without", async () => {
  const { ask, statuses } = await asking("responses", scriptedModel());
  await expect(ask({ tools: [tool("bash", refused), good] })).rejects.toMatchObject({
    class: "rejected",
    message: expect.stringContaining("Invalid schema for function 'bash'"),
  });
  expect(statuses()).toEqual([400]);
});

it("says nothing of tools that are taken, and leaves other refusals alone", async () => {
  const { ask, statuses } = await asking("responses", scriptedModel().says("Hi."));
  expect(await ask({ tools: [good] })).not.toHaveProperty("refusedTools");
  await expect(ask({ tools: [tool("docs good", plain)] })).rejects.toMatchObject({ class: "rejected" });
  expect(statuses()).toEqual([200, 400]);
});

it("asks no second time after the first words of an answer", async () => {
  const message = "The grammar of its tools is too large.";
  const error = { type: "error", code: "invalid_prompt", message } as const;
  const { ask, statuses } = await asking("responses", scriptedModel().answers(text("Well,"), error));
  await expect(ask({ tools: [good] })).rejects.toMatchObject({ class: "rejected" });
  expect(statuses()).toEqual([200]);
});

/** Refuses one field of the body, wherever it is, in the words of a server. */
const refusing =
  (field: RegExp, message: string): Turn =>
  ({ raw }) =>
    field.test(JSON.stringify(raw)) ? { error: { status: 400, message } } : { parts: [text("Hi.")] };

it.each([
  ["responses", "prompt_cache_key", "Unknown parameter: 'prompt_cache_key'."],
  ["messages", "thinking", "adaptive thinking is not supported on this model"],
  ["chat", "stream_options", "property 'stream_options' is unsupported"],
  ["gemini", "thinkingConfig", "Unknown name \"thinkingConfig\" at 'generation_config': Cannot find field."],
] as const)("a field of ours, on the %s wire (%s): it is left out", async (api, field, message) => {
  const turn = refusing(new RegExp(`"${field}":`), message);
  const script = scriptedModel();
  for (let at = 0; at < 3; at += 1) script.replies(turn);
  const { server, ask, statuses } = await asking(api, script);
  const request = { reasoning: { summary: "auto" }, thinks: true } as const;
  const part = (isNew: boolean) => [
    expect.objectContaining({ mediaType: "field", filename: expect.stringContaining(field), isNew }),
  ];
  expect((await ask(request)).refusedParts).toEqual(part(true));
  expect(statuses()).toEqual([400, 200]);
  expect((await ask(request)).refusedParts).toEqual(part(false));
  expect(statuses()).toEqual([400, 200, 200]);
  expect(server.requests.map(({ raw }) => JSON.stringify(raw).includes(`"${field}"`))).toEqual([
    true,
    false,
    false,
  ]);
});

it("a field that is named and was not sent, or does not help: the refusal ends as before", async () => {
  const script = scriptedModel().fails(400, "Unknown parameter: 'frobnicate'.");
  script.fails(400, "Unknown parameter: 'prompt_cache_key'.", { times: 2 });
  const { ask, statuses } = await asking("responses", script);
  await expect(ask({})).rejects.toMatchObject({ class: "rejected" });
  expect(statuses()).toEqual([400]);
  await expect(ask({})).rejects.toThrow("prompt_cache_key");
  expect(statuses()).toEqual([400, 400, 400]);
});
