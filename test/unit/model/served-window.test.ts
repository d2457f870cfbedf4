import { describe, expect, it } from "vitest";
import type { ModelTarget } from "../../../activities/config/model-target.ts";
import type { Endpoint } from "../../../activities/model/endpoint.ts";
import type { ModelAnswer } from "../../../activities/model/model.ts";
import { runnerDocuments, runnerFacts, ServedWindows } from "../../../activities/model/served-window.ts";
import { askedAs } from "../../support/run-config.ts";

const documents = {
  ollama: { "/api/ps": { models: [{ name: "m:latest", context_length: 4_096 }] } },
  lmstudio: {
    "/api/v0/models": { data: [{ id: "m", loaded_context_length: 4_096, max_context_length: 32_768 }] },
  },
  llamacpp: {
    "/props": { default_generation_settings: { n_ctx: 4_096 }, chat_template_caps: { supports_tools: true } },
  },
} as const;
type Documents = Readonly<Record<string, unknown>>;
const from = (given: Documents) => async (path: string) => given[path.split("?")[0] ?? ""];

const answer: ModelAnswer = {
  content: [{ type: "text", text: "Yes." }],
  finish: "stop",
  usage: undefined,
  firstTokenMs: 1,
  durationMs: 2,
};

const askRunner = async (get: ReturnType<typeof from>, model: string) =>
  runnerFacts(await runnerDocuments(get, model), model);

const urlOf = (input: Parameters<typeof fetch>[0]) =>
  input instanceof Request ? input.url : input.toString();

/** @returns what becomes of an answer, and the addresses that were asked */
async function checked(
  given: Documents,
  {
    size = 1_000,
    baseUrl = "http://127.0.0.1:9/v1",
    ...target
  }: Partial<ModelTarget> & { size?: number; baseUrl?: string } = {},
) {
  const asked: string[] = [];
  const endpoint: Endpoint = { modelId: "m", apiKey: "key", baseUrl, headers: {}, query: {} };
  const of: ModelTarget = {
    ...askedAs("x/m"),
    contextWindow: 32_000,
    maxOutput: 2_000,
    api: "chat",
    input: ["text"],
    ...target,
  };
  const result = await new ServedWindows()
    .check(answer, { target: of, estimatedTokens: size }, endpoint, async (input) => {
      const { pathname, href } = new URL(urlOf(input));
      asked.push(href);
      return pathname in given ? Response.json(given[pathname]) : new Response(null, { status: 404 });
    })
    .catch((error: unknown) => error);
  return { result, asked };
}

describe.each(Object.entries(documents))("%s", (runner, given) => {
  it("says the window in use", async () => {
    expect(await askRunner(from(given), "m")).toMatchObject({ runner, contextWindow: 4_096 });
  });

  it("keeps an answer whose request fitted, and drops one that was cut", async () => {
    const { result, asked } = await checked(given);
    expect(result).toMatchObject({ ...answer, served: { contextWindow: 4_096, message: /./ } });
    expect(asked.every((address) => address.startsWith("http://127.0.0.1:9/"))).toBe(true);
    expect((await checked(given, { size: 5_000 })).result).toMatchObject({
      class: "overflow",
      servedWindow: 4_096,
    });
    expect((await checked(given, { contextWindow: 4_096 })).result).toBe(answer);
  });
});

it("a template without tools is known from llama.cpp; a model not loaded has no window", async () => {
  const props = { default_generation_settings: { n_ctx: 1 }, chat_template_caps: { supports_tools: false } };
  expect(await askRunner(from({ "/props": props }), "m")).toMatchObject({ tools: false });
  expect(await askRunner(from({ "/api/ps": { models: [] } }), "m")).toEqual({ runner: "ollama" });
  expect(await askRunner(from({}), "m")).toBeUndefined();
});

it.each([
  ["http://192.168.1.7:11434/v1", {}, true],
  ["http://box:11434/v1", {}, true],
  ["http://host.docker.internal:11434/v1/", {}, true],
  ["http://[::1]:1/v1", {}, true],
  ["http://gpu.lan/v1", { api: "responses" }, true],
  ["https://models.example.com/v1", {}, false],
  ["https://models.example.com/v1", { provider: { name: "ollama" } }, true],
  ["http://127.0.0.1:9/v1", { api: "messages" }, false],
  ["http://127.0.0.1:9/v1", { provider: { name: "rehearsal" } }, false],
] as const)("is asked of servers nearby, or known by name: %s %j", async (baseUrl, target, isAsked) => {
  const { asked, result } = await checked({}, { baseUrl, ...target });
  expect(asked.length > 0).toBe(isAsked);
  expect(result).toBe(answer);
});

it("is asked again after ten minutes only, but at once while the model is not loaded", async () => {
  const windows = new ServedWindows();
  const endpoint: Endpoint = {
    modelId: "m",
    apiKey: undefined,
    baseUrl: "http://127.0.0.1:9/v1",
    headers: {},
    query: {},
  };
  const target: ModelTarget = {
    ...askedAs("x/m"),
    contextWindow: 8_000,
    maxOutput: 1,
    api: "chat",
    input: ["text"],
  };
  let models: unknown[] = [];
  let asked = 0;
  const ask = () =>
    windows.check(answer, { target }, endpoint, async (input) => {
      asked += 1;
      return urlOf(input).endsWith("/api/ps")
        ? Response.json({ models })
        : new Response(null, { status: 404 });
    });
  expect(await ask()).toBe(answer);
  models = [{ name: "m", context_length: 4_096 }];
  expect(await ask()).toMatchObject({ served: { contextWindow: 4_096 } });
  const before = asked;
  expect(await ask()).toMatchObject({ served: { contextWindow: 4_096 } });
  expect(asked).toBe(before);
});
