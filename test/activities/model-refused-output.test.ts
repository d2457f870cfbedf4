/** A model that writes less than it is asked for at most: refused once, and asked for what its provider says. */
import { expect, it } from "vitest";
import { createAiSdkModel } from "../../activities/model/ai-sdk.ts";
import { modelRequest, play, type RequestParts } from "../support/model-request.ts";
import type { DialectName } from "../support/model-server/dialects/dialects.ts";
import { scriptedModel } from "../support/scripted-model.ts";

const key = { OPENAI_API_KEY: "sk-test-secret", ANTHROPIC_API_KEY: "sk-test-secret" };
const environment = { ...key, GOOGLE_GENERATIVE_AI_API_KEY: "sk-test-secret" };

const PLACES: readonly [RequestParts["api"], DialectName, string][] = [
  ["responses", "openai", "OPENAI_API_KEY"],
  ["chat", "openai", "OPENAI_API_KEY"],
  ["messages", "anthropic", "ANTHROPIC_API_KEY"],
  ["gemini", "gemini", "GOOGLE_GENERATIVE_AI_API_KEY"],
];

it.each(PLACES)("on the %s wire of %s", async (api, dialect, keyEnv) => {
  const server = await play(scriptedModel().says("One.").says("Two."), {
    dialect,
    models: { some: { window: 100_000, maxOutput: 4_000 } },
  });
  const port = createAiSdkModel({ environment, mask: (text) => text });
  const ask = () =>
    port.ask(
      modelRequest({
        api: api ?? "chat",
        model: `${dialect}/some`,
        modelName: "some",
        provider: { name: dialect, baseUrl: server.baseUrl, keyEnv },
        maxOutputTokens: 32_768,
        reasoning: { summary: "none" },
        thinks: false,
      }),
      () => undefined,
      new AbortController().signal,
    );
  await ask();
  await ask();
  expect(server.log.map(({ status }) => status)).toEqual([400, 200, 200]);
  expect(server.requests.map(({ maxOutputTokens }) => maxOutputTokens)).toEqual([4_000, 4_000]);
});
