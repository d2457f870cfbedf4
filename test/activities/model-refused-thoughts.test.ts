/** What an answer carries for its provider alone, and that cannot read it any more: the session goes on without. */
import { expect, it } from "vitest";
import type { AssistantPart } from "../../activities/contract/message.ts";
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
import { call, scriptedModel, thought } from "../support/scripted-model.ts";

const environment = {
  OPENAI_API_KEY: "sk-test-secret",
  ANTHROPIC_API_KEY: "sk-test-secret",
  GOOGLE_GENERATIVE_AI_API_KEY: "sk-test-secret",
};
const served = { window: 200_000, maxOutput: 64_000, reasoning: true, signatures: true } as const;

const WIRES = {
  responses: { model: "openai/o3", dialect: "openai", keyEnv: "OPENAI_API_KEY" },
  messages: { model: "anthropic/claude-sonnet-5", dialect: "anthropic", keyEnv: "ANTHROPIC_API_KEY" },
  gemini: { model: "google/gemini-3.8-flash", dialect: "gemini", keyEnv: "GOOGLE_GENERATIVE_AI_API_KEY" },
} as const;

/** As another account's key would find it. */
const unreadable = (content: readonly AssistantPart[]): AssistantPart[] =>
  JSON.parse(
    JSON.stringify(content, (key, value: unknown) =>
      /encrypted|signature/i.test(key) && typeof value === "string" ? `${value.slice(0, -6)}AAAAAA` : value,
    ),
  ) as AssistantPart[];

it.each(["responses", "messages", "gemini"] as const)(
  "on the %s wire it is asked once more, and what came since is sent",
  async (api) => {
    const { model, dialect, keyEnv } = WIRES[api];
    const modelName = model.split("/")[1] ?? "";
    const script = scriptedModel();
    for (const command of ["ls", "pwd", "id"])
      script.answers(thought("Hm, a look."), call("bash", { command }));
    const server = await play(script, { dialect, models: { [modelName]: served } });
    const provider = { name: dialect, baseUrl: server.baseUrl, keyEnv };
    const target: RequestParts = {
      model,
      modelName,
      api,
      provider,
      reasoning: { effort: "low" },
      thinks: true,
    };
    const port = createAiSdkModel({ environment, mask: (text) => text });
    const ask = (messages: RequestParts["messages"] = []): Promise<ModelAnswer> =>
      port.ask(
        modelRequest({ ...target, messages: [user("Look."), ...messages] }),
        () => undefined,
        new AbortController().signal,
      );
    const idOf = ({ content }: ModelAnswer) =>
      content.flatMap((part) => (part.type === "tool-call" ? [part.toolCallId] : []))[0] ?? "";
    const first = await ask();
    const turn = [assistant(...unreadable(first.content)), toolResult(idOf(first), "a.txt")];
    const second = await ask(turn);
    const why = expect.stringMatching(/refuses the request \(400\): .*(verified|signature)/i);
    expect(second.refusedParts).toEqual([{ mediaType: "thoughts", why, isNew: true }]);
    expect(server.log.map(({ status }) => status)).toEqual([200, 400, 200]);
    const third = await ask([...turn, assistant(...second.content), toolResult(idOf(second), "/workspace")]);
    expect(third.refusedParts).toEqual([{ mediaType: "thoughts", why, isNew: false }]);
    expect(server.log.map(({ status }) => status)).toEqual([200, 400, 200, 200]);
    const sent = JSON.stringify(server.requests.at(-1)?.raw);
    expect(sent).toMatch(/encrypted_content|ignature/);
  },
);
