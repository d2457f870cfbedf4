/**
 * Sessions with a real model on a real local server. A model of half a billion parameters does little right, so what it says is
 * printed, and only what becomes of it is asserted.
 */
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { WireOptions } from "../../activities/config/model-target.ts";
import { answerText, type AssistantPart } from "../../activities/contract/message.ts";
import { askWindows, modelServerCheck } from "../../client/setup/model-check.ts";
import { directConfig, startDirectAgent } from "../support/direct-agent.ts";
import { playLoop } from "../support/direct-loop.ts";
import { scriptedModel } from "../support/scripted-model.ts";
import { answersOf, callRows } from "../support/stored.ts";
import { useDatabase } from "../support/test-database.ts";
import { type LlamaServer, prepareRealModel, startLlama } from "./llama.ts";

const database = useDatabase();
const prepared = await prepareRealModel();
if (!prepared.ok) process.stdout.write(`Skipped: sessions with a real model, since ${prepared.why}.\n`);

const WINDOW = 16_384;
const TASK = "Create the file hello.txt that contains the word hello.";
const JSON_CALLS = fileURLToPath(new URL("json-calls.jinja", import.meta.url));

const targetAt = (baseUrl: string, options: WireOptions = {}) => ({
  model: "llamacpp/qwen",
  modelName: "qwen",
  api: "chat" as const,
  input: ["text" as const],
  maxOutput: 1_000,
  provider: { name: "llamacpp", baseUrl, options },
});

/** The loop that is played here cannot wait for a person. */
const NOBODY = { mode: "deny", parkAfter: 600_000, maxOpen: 8 } as const;

/** A session of a few steps. */
async function play({ baseUrl }: LlamaServer, { window = WINDOW, ...options }: Options = {}) {
  const { limits } = directConfig();
  const agent = await startDirectAgent(database, scriptedModel(), {
    task: TASK,
    config: { contextWindow: window, limits: { ...limits, maxSteps: 3 }, questions: NOBODY },
    targetAt: () => targetAt(baseUrl, options),
  });
  const { status } = await playLoop(agent);
  const answers = await answersOf(database.store, agent.id);
  const texts = answers.map(({ content }) => answerText(content as AssistantPart[]));
  const calls = (await callRows(database.store, agent.id)).map(({ name }) => name);
  process.stdout.write(`${status}; calls: ${calls.join(", ") || "none"}; texts: ${JSON.stringify(texts)}\n`);
  if (status === "completed") expect(texts.at(-1)).not.toMatch(WRITTEN);
  return { agent, status, texts, calls };
}
type Options = WireOptions & { readonly window?: number };

/** What a small model writes in place of a call. */
const WRITTEN = /"(?:name|function)":\s*"\w+"/;

describe.skipIf(!prepared.ok)("a local model whose chat template", { timeout: 900_000 }, () => {
  const templates = { "does not fit": undefined, fits: JSON_CALLS };
  describe.each(Object.entries(templates))("%s", (_, template) => {
    let server: LlamaServer;
    beforeAll(async () => {
      if (prepared.ok) server = await startLlama(prepared, { contextWindow: WINDOW, template });
    }, 120_000);
    afterAll(() => server?.close());

    it("completes no task with a call that it only wrote", async () => {
      const { status, calls } = await play(server);
      if (template === undefined) expect([calls, status]).toEqual([[], "CallInText"]);
      else expect(calls).not.toEqual([]);
    });

    it.runIf(template === undefined)("has its calls read where the configuration says so", async () => {
      const { calls } = await play(server, { callsInText: true });
      expect(calls).not.toEqual([]);
    });

    it.runIf(template === undefined)(
      "says its window, before the start and with the first answer",
      async () => {
        const target = { ...targetAt(server.baseUrl), contextWindow: 32_000 };
        expect(await askWindows([target], {})).toMatchObject({ "llamacpp/qwen": { contextWindow: WINDOW } });
        expect(await modelServerCheck(target, {})).toMatchObject({ warning: true });
        const { agent } = await play(server, { window: 32_000 });
        expect(await agent.dataOf("llm:unsupported-input")).toMatchObject([
          { mediaType: "window", message: expect.stringContaining(`a window of ${WINDOW} tokens`) },
        ]);
      },
    );
  });
});
