import { createServer } from "node:http";
import { text } from "node:stream/consumers";
import { describe, expect, it } from "vitest";
import { askWindows, serverFinding } from "../../../client/setup/model-check.ts";
import { askServer, findLocalServers, serverNote } from "../../../client/setup/model-servers.ts";
import { listen } from "../../support/listen.ts";

type Documents = Readonly<Record<string, unknown>> | ((path: string, body: string) => unknown);

/** A server with these documents only; a null one never answers. */
async function serverWith(documents: Documents): Promise<string> {
  const server = createServer((request, response) => {
    void text(request).then((body) => {
      const path = request.url ?? "";
      const document = typeof documents === "function" ? documents(path, body) : documents[path];
      if (document === null) return;
      response.statusCode = document === undefined ? 404 : 200;
      response.end(JSON.stringify(document ?? {}));
    });
  });
  return `http://127.0.0.1:${await listen(server)}/v1`;
}
const list = (...ids: string[]) => ({ object: "list", data: ids.map((id) => ({ id })) });

describe("what a model server reports about itself", () => {
  it.each([
    ["vLLM", { "/v1/models": { data: [{ id: "m", max_model_len: 32_768 }] } }, 32_768],
    ["a router", { "/v1/models": { data: [{ id: "m", context_length: 200_000 }] } }, 200_000],
    [
      "llama.cpp",
      { "/v1/models": list("m"), "/props": { default_generation_settings: { n_ctx: 4_096 } } },
      4_096,
    ],
    [
      "Ollama",
      { "/v1/models": list("m"), "/api/ps": { models: [{ name: "m", context_length: 8_192 }] } },
      8_192,
    ],
    [
      "LM Studio",
      {
        "/v1/models": list("m"),
        "/api/v0/models": { data: [{ id: "m", loaded_context_length: 4_096, max_context_length: 131_072 }] },
      },
      4_096,
    ],
    ["a server that does not say", { "/v1/models": list("m") }, undefined],
  ])("is the server's actual window: %s", async (_, documents, window) => {
    const models = await askServer(await serverWith(documents), { timeoutMs: 2_000 });
    expect(models).toEqual([
      expect.objectContaining(window === undefined ? { id: "m" } : { id: "m", contextWindow: window }),
    ]);
  });

  it("is nothing if another kind of server answers, or none does in time", async () => {
    expect(await askServer(await serverWith({}), { timeoutMs: 2_000 })).toBeUndefined();
    expect(
      await askServer(await serverWith({ "/v1/models": "hello" }), { timeoutMs: 2_000 }),
    ).toBeUndefined();
    expect(await askServer(await serverWith({ "/v1/models": null }), { timeoutMs: 50 })).toBeUndefined();
    expect(await askServer("http://127.0.0.1:1/v1", { timeoutMs: 50 })).toBeUndefined();
  });

  it("lists those on this machine with the flag that uses them", async () => {
    const baseUrl = await serverWith({ "/v1/models": list("qwen3:8b", "gemma") });
    const servers = [
      { provider: "ollama", baseUrl },
      { provider: "vllm", baseUrl: "http://127.0.0.1:1/v1" },
    ];
    const notes = (await findLocalServers(servers)).map(serverNote);
    expect(notes).toEqual([
      expect.stringMatching(/providers\.ollama\.baseUrl: http.* --model ollama\/qwen3:8b \(or gemma\)/),
    ]);
  });

  it("recommends a model that can call tools, and none if the server says that none can", async () => {
    const capable = { small: ["completion"], embed: ["embedding"], large: ["completion", "tools"] };
    const serve = (names: readonly (keyof typeof capable)[]) =>
      serverWith((path, body) => {
        if (path === "/v1/models") return list(...names);
        if (path === "/api/ps") return { models: [] };
        const { model = "" } = path === "/api/show" ? (JSON.parse(body) as { model?: string }) : {};
        return model in capable ? { capabilities: capable[model as keyof typeof capable] } : undefined;
      });
    const noteOf = async (names: readonly (keyof typeof capable)[]) => {
      const baseUrl = await serve(names);
      return (await findLocalServers([{ provider: "ollama", baseUrl }])).map(serverNote);
    };
    expect(await noteOf(["small", "embed", "large"])).toEqual([
      expect.stringMatching(/--model ollama\/large$/),
    ]);
    expect(await noteOf(["small", "embed"])).toEqual([
      expect.stringMatching(/none of its models can call tools: small, embed\.$/),
    ]);
  });

  it("says a plain flag for a server at its usual address", () => {
    const baseUrl = "http://127.0.0.1:11434/v1";
    expect(serverNote({ provider: "ollama", baseUrl, models: [{ id: "m" }] })).toMatch(
      /To use it: --model ollama\/m$/,
    );
  });
});

describe("the window of a model in no table", () => {
  const ask = async (provider: string, modelName: string, documents: Readonly<Record<string, unknown>>) => {
    const baseUrl = await serverWith(documents);
    const target = {
      model: `${provider}/${modelName}`,
      modelName,
      contextWindow: 32_000,
      maxOutput: 8_000,
      api: "chat",
    } as const;
    const served = await askWindows([{ ...target, provider: { name: provider, baseUrl } }], {});
    return served[target.model];
  };
  it.each([
    [["completion", "vision"], false],
    [["completion", "tools"], undefined],
    [undefined, undefined],
  ])("comes with whether it can call tools, if the server says so: %j", async (capabilities, tools) => {
    const shown = { ...ollama("")["/api/show"], capabilities };
    const loaded = { "/api/ps": { models: [{ name: "qwen3:latest", context_length: 4_096 }] } };
    for (const documents of [{}, loaded])
      expect((await ask("ollama", "qwen3", { ...ollama(""), ...documents, "/api/show": shown }))?.tools).toBe(
        tools,
      );
  });

  const ollama = (parameters: string) => ({
    "/v1/models": list("qwen3:latest"),
    "/api/ps": { models: [] },
    "/api/show": {
      parameters,
      model_info: { "general.architecture": "qwen3", "qwen3.context_length": 40_960 },
    },
  });

  it.each([
    [
      "ollama",
      "qwen3",
      ollama('stop "x"\nnum_ctx                        8192'),
      { runner: "ollama", contextWindow: 8_192, most: 40_960 },
    ],
    ["ollama", "qwen3", ollama(""), { runner: "ollama", contextWindow: undefined, most: 40_960 }],
    [
      "ollama",
      "qwen3",
      { ...ollama(""), "/api/ps": { models: [{ name: "qwen3:latest", context_length: 4_096 }] } },
      { runner: "ollama", contextWindow: 4_096, most: 40_960 },
    ],
    [
      "llamacpp",
      "any",
      { "/v1/models": list("m.gguf"), "/props": { default_generation_settings: { n_ctx: 16_384 } } },
      { runner: "llamacpp", contextWindow: 16_384, most: undefined },
    ],
    [
      "lmstudio",
      "m",
      { "/v1/models": list("m"), "/api/v0/models": { data: [{ id: "m", max_context_length: 131_072 }] } },
      { runner: "lmstudio", contextWindow: undefined, most: 131_072 },
    ],
  ])("is its server's current or possible window: %s", async (provider, name, documents, facts) => {
    expect(await ask(provider, name, documents)).toEqual({
      ...facts,
      from: expect.stringContaining("127.0.0.1"),
    });
  });

  it("comes with what a llama.cpp's template can do", async () => {
    const props = {
      default_generation_settings: { n_ctx: 1 },
      chat_template_caps: { supports_tools: false },
    };
    const documents = { "/v1/models": list("m"), "/props": props };
    expect(await ask("llamacpp", "m", documents)).toMatchObject({ tools: false });
  });

  it("is asked of Ollama under any name of its provider", async () => {
    const shown = { ...ollama("")["/api/show"], capabilities: ["completion"] };
    const loaded = { "/api/ps": { models: [{ name: "qwen3:latest", context_length: 4_096 }] } };
    const documents = { ...ollama(""), ...loaded, "/api/show": shown };
    expect(await ask("box", "qwen3", documents)).toMatchObject({ tools: false, runner: "ollama" });
  });

  it("stays assumed if the server does not report it", async () => {
    expect(await ask("vllm", "m", { "/v1/models": list("m") })).toBeUndefined();
    expect(await ask("vllm", "m", { "/v1/models": null })).toBeUndefined();
  });
});

describe("doctor's line about it", () => {
  const run = {
    model: "vllm/m",
    modelName: "m",
    provider: { name: "vllm" },
    contextWindow: 32_000,
    maxOutput: 8_000,
    api: "chat",
  } as const;
  const finding = (models: Parameters<typeof serverFinding>[2]) => serverFinding(run, "http://x/v1", models);

  it("warns of a window smaller than assumed, and of a missing model", () => {
    expect(finding([{ id: "m", contextWindow: 16_384 }])).toMatchObject({
      warning: true,
      fix: expect.stringContaining("models.vllm/m.contextWindow: 16384"),
    });
    expect(finding([{ id: "other" }])).toMatchObject({
      warning: true,
      fix: expect.stringContaining("other"),
    });
    expect(finding(undefined)).toMatchObject({ warning: true });
  });

  it.each([
    [
      { contextWindow: 4_096, runner: "ollama", most: 40_960 },
      /nothing is left.*OLLAMA_CONTEXT_LENGTH=32768/,
    ],
    [{ contextWindow: 9_000, runner: "llamacpp" }, /only some \d{4} are left.*--ctx-size 32768/],
    [{ contextWindow: 16_384, runner: "ollama" }, /^Give it more: .*num_ctx 32000/],
    [{ contextWindow: undefined, runner: "lmstudio", most: 65_536 }, /lms load --context-length 32000/],
    [{ tools: false, contextWindow: 32_000 }, /tools: none/],
  ] as const)(
    "warns of what leaves no room, is loaded later or calls no tools, with what helps: %j",
    (facts, fix) => {
      expect(finding([{ id: "m", ...facts }])).toMatchObject({
        ok: true,
        warning: true,
        fix: expect.stringMatching(fix),
      });
    },
  );

  it("says how a model is named that the server has with another prefix, or without one", () => {
    const behind = { ...run, provider: { name: "openai", baseUrlEnv: "OPENAI_BASE_URL" } };
    const fixOf = (modelName: string, id: string, more: object = {}) =>
      serverFinding({ ...behind, ...more, modelName }, "http://x/v1", [{ id: "other" }, { id }]).fix;
    expect(fixOf("openai/gpt-4o", "gpt-4o")).toBe("The server calls it gpt-4o: --model gpt-4o.");
    expect(fixOf("gpt-4o", "openai/gpt-4o")).toBe(
      "The server calls it openai/gpt-4o: --model openai/gpt-4o.",
    );
    const vllm = { provider: { name: "vllm", baseUrl: "http://x/v1" } };
    expect(fixOf("m", "team/m", vllm)).toBe("The server calls it team/m: --model vllm/team/m.");
    expect(fixOf("gpt-4o", "my-gpt-4o")).toBe("It has other, my-gpt-4o.");
  });

  it("is content with one that is as large", () => {
    expect(finding([{ id: "m", contextWindow: 32_000 }])).toEqual({
      name: "Model server",
      ok: true,
      found: "1 model at http://x/v1; m has a window of 32000 tokens",
    });
  });
});

it("doctor says how many slots of llama.cpp may share the window", async () => {
  const finding = async (slots: number) => {
    const baseUrl = await serverWith({
      "/v1/models": list("m"),
      "/props": { default_generation_settings: { n_ctx: 65_536 }, total_slots: slots },
    });
    const models = await askServer(baseUrl, { timeoutMs: 2_000 });
    const provider = { name: "llamacpp", baseUrl };
    const asked = { model: "llamacpp/m", modelName: "m", contextWindow: 65_536, maxOutput: 4_000 };
    return serverFinding({ ...asked, provider, api: "chat" }, baseUrl, models).found;
  };
  expect(await finding(2)).toContain("65536 tokens, for 2 requests at once");
  expect(await finding(2)).toContain("share it with --kv-unified or without --parallel");
  expect(await finding(1)).not.toContain("at once");
});
