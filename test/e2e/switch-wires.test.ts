/** One session over all four wires: each gets a valid request, and each model its own reasoning back. */
import { expect, it } from "vitest";
import type { ModelTarget } from "../../activities/config/model-target.ts";
import { switchModel } from "../../activities/store/session-settings.ts";
import { useAgent, runConfig } from "../support/agent-harness.ts";
import type { ReplyPart } from "../support/model-server/wire.ts";
import { call, scriptedModel, text, thought } from "../support/scripted-model.ts";
import { askedAs } from "../support/run-config.ts";

const agent = useAgent();

const common = { contextWindow: 200_000, maxOutput: 4_000, input: ["text", "image"], thinks: true } as const;
const key = { keyEnv: "OPENAI_API_KEY" };
const openai: ModelTarget = {
  ...common,
  input: ["text", "image"],
  ...askedAs("openai/o3"),
  api: "responses",
};
const claude: ModelTarget = {
  ...openai,
  model: "anthropic/claude-opus-5",
  modelName: "claude-opus-5",
  api: "messages",
  provider: { name: "anthropic", baseUrlEnv: "OPENAI_BASE_URL", ...key },
};
const gemini: ModelTarget = {
  ...openai,
  model: "google/gemini-4-argon",
  modelName: "gemini-4-argon",
  api: "gemini",
  provider: { name: "google", baseUrlEnv: "GEMINI_BASE_URL", ...key },
};
const chat: ModelTarget = {
  ...openai,
  model: "acme/coder",
  modelName: "coder",
  api: "chat",
  provider: { name: "acme", baseUrlEnv: "OPENAI_BASE_URL", ...key },
};
const models = {
  o3: { window: 200_000, reasoning: true },
  "claude-opus-5": { window: 200_000, reasoning: true },
  "gemini-4-argon": { window: 200_000, reasoning: true, signatures: true },
  coder: { window: 200_000 },
};

it(
  "continues whole from model to model, and encrypted reasoning is sent back after the return",
  { tags: ["L1"] },
  async () => {
    let id = "";
    const round: readonly ModelTarget[] = [openai, claude, gemini, chat];
    const script = scriptedModel();
    // Twice around, then back: the model is switched while it answers, and the next step uses the next one.
    const way = [...round, ...round, openai];
    for (const [place, target] of way.entries()) {
      const parts: ReplyPart[] = [
        // OpenAI's own chat wire shows no reasoning.
        ...(target === chat ? [] : [thought(`Thought ${place} of ${target.model}.`)]),
        text(`Step ${place}.`),
        call("bash", { command: `echo result-${place}` }),
      ];
      const next = way[place + 1];
      script.replies(async () => {
        if (next !== undefined) await switchModel(agent.database.store, id, { ...runConfig(), ...next });
        return { parts };
      });
    }
    script.says("All of them worked on it.");
    const session = await agent.start(script, {
      served: models,
      config: openai,
      named: (given) => (id = given),
    });
    expect(await session.result()).toMatchObject({
      status: "completed",
      result: "All of them worked on it.",
    });

    const refused = session.model.log.filter(({ status }) => status !== 200);
    expect(refused).toEqual([]);
    const { requests } = session.model;
    expect(requests.map(({ api }) => api)).toEqual([...way, openai].map(({ api }) => api));
    expect(await session.dataOf("llm:switched")).toEqual(
      way.slice(1).map(({ model }, place) => ({ from: way[place]?.model, to: model, reason: "person" })),
    );
    const last = JSON.stringify(requests.at(-1)?.raw);
    for (const place of way.keys()) expect(last).toContain(`result-${place}`);
    for (const [place, { model }] of way.entries()) {
      // Its own thoughts, and no other model's.
      if (model === openai.model) expect(last).toContain(`Thought ${place} of`);
      else expect(last).not.toContain(`Thought ${place} of`);
    }
    expect(last.match(/encrypted_content"/g)?.length).toBeGreaterThanOrEqual(3);
  },
);
