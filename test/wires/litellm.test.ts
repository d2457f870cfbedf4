import { describe, expect, it } from "vitest";
import { guidance, createDirectAgent } from "../support/direct-agent.ts";
import { playLoop } from "../support/direct-loop.ts";
import { DOT_PNG } from "../support/images.ts";
import { call, scriptedModel, text, thought, type ModelScript } from "../support/scripted-model.ts";
import { answersOf, resultTexts } from "../support/stored.ts";
import { useDatabase } from "../support/test-database.ts";
import { installLiteLlm, startLiteLlm, type LiteLlm } from "./litellm.ts";

const database = useDatabase();
const installed = await installLiteLlm();
if (!installed.ok) process.stdout.write(`Skipped: a session through LiteLLM, since ${installed.why}.\n`);
const program = installed.ok ? installed.program : "";

const STEPS = 20;

/** Tools, two calls at once, an image, thoughts, words in between. */
function session(): ModelScript {
  const script = scriptedModel()
    .answers(thought("The picture first."), call("view_image", { path: "dot.png" }))
    .answers(
      text("Two at once."),
      call("bash", { command: "echo one" }),
      call("bash", { command: "echo two" }),
    );
  for (let step = 3; step < STEPS; step += 1)
    script.answers(thought(`Step ${step} is next.`), call("bash", { command: `echo step ${step}` }));
  return script.says("It is done.");
}

describe.skipIf(!installed.ok)("a session through LiteLLM", () => {
  it.each([
    ["responses", "o3"],
    ["chat", "gpt-4o"],
  ] as const)("runs whole on the %s wire", { timeout: 900_000 }, async (api, model) => {
    const proxies: LiteLlm[] = [];
    const agent = await createDirectAgent(database, session(), {
      config: { model: `openai/${model}`, modelName: model, api, contextWindow: 128_000, maxOutput: 16_000 },
      served: {
        [model]: { window: 128_000, maxOutput: 16_000, input: ["text", "image"], reasoning: model === "o3" },
      },
      through: async (upstream) => {
        const proxy = await startLiteLlm(program, upstream, [model]);
        proxies.push(proxy);
        return proxy.baseUrl;
      },
    });
    try {
      await agent.sandbox.files.write("dot.png", DOT_PNG);
      const end = await playLoop(agent, {
        guidanceAt: (step) => (step === 5 ? [guidance("Look at this as well.")] : []),
      });
      expect(end).toMatchObject({ status: "completed", state: { step: STEPS } });
      expect(agent.model.log.map((served) => served.refused)).toEqual(agent.model.log.map(() => undefined));
      expect(agent.model.requests.map((request) => request.api)).toEqual(
        Array.from({ length: STEPS }, () => api),
      );
      const results = await resultTexts(database.store, agent.id);
      expect(results).toHaveLength(STEPS);
      expect(results.join()).toContain("step 19");
      const last = agent.model.requests.at(-1);
      expect(JSON.stringify(last?.items)).toContain("Look at this as well.");
      expect(JSON.stringify(last?.items)).toContain('"type":"image"');
      expect(await answersOf(database.store, agent.id)).toHaveLength(STEPS);
    } finally {
      await agent.close();
      for (const proxy of proxies) await proxy.close();
    }
  });
});
