import { describe, expect, it } from "vitest";
import { agentConfigSchema } from "../../../activities/config/agent-config.ts";
import { publishedCatalogue } from "../../../activities/config/catalogue/catalogue.ts";
import { resolveModel as resolve, type tooLittle, USUAL_PREFIX } from "../../../activities/config/models.ts";
import { resolveRun } from "../../../activities/config/resolve-run.ts";
import { systemPrompt } from "../../../activities/config/system-prompt.ts";
import { buildPrefix } from "../../../activities/context/request.ts";

describe("a model that is in no table, with a window from its server", () => {
  type Served = Partial<NonNullable<Parameters<typeof tooLittle>[2]>>;
  const ask = (served: Served, settings = agentConfigSchema.parse({})) =>
    resolve(
      "ollama/qwen3",
      settings,
      {},
      {
        catalogue: publishedCatalogue,
        now: 0,
        served: { "ollama/qwen3": { ...served, from: "http://x/v1" } },
      },
    );

  it("has the server's window", () => {
    expect(ask({ contextWindow: 8_192 })).toMatchObject({
      ok: true,
      isUnlisted: true,
      model: { contextWindow: 8_192, maxOutput: 2_730 },
      notes: [
        expect.stringContaining("its server http://x/v1 gives it a window of 8192 tokens"),
        expect.stringContaining("only some 2562 are left for the conversation"),
      ],
    });
  });

  it("is told with what gives it more, and not to write down what its server does not have", () => {
    const asked = ask({ most: 131_072, runner: "ollama" });
    const notes = asked.ok ? asked.notes : [];
    expect(notes).toEqual([
      expect.stringMatching(/asked again once it has loaded .*OLLAMA_CONTEXT_LENGTH=32000/),
    ]);
    expect(notes[0]).not.toContain("contextWindow:");
  });

  it("is compared with a configured one: its server's is said if it is smaller", () => {
    const settings = agentConfigSchema.parse({ models: { "ollama/qwen3": { contextWindow: 32_000 } } });
    expect(ask({ contextWindow: 4_096, runner: "ollama" }, settings)).toMatchObject({
      isUnlisted: true,
      notes: [
        expect.stringMatching(
          /with a window of 4096 tokens, and 32000 are configured.*nothing is left.*num_ctx/,
        ),
      ],
    });
    expect(ask({ contextWindow: 40_960, runner: "ollama" }, settings)).toMatchObject({ notes: [] });
  });

  it("leaves room beside a prefix of the size that sessions have", () => {
    const run = resolveRun(agentConfigSchema.parse({}), "gpt-4o");
    const config = run.ok ? run.run : undefined;
    expect(config).toBeDefined();
    if (config === undefined) return;
    const { tokens } = buildPrefix({ system: systemPrompt({ config, instructions: undefined }), config });
    expect(tokens / USUAL_PREFIX).toBeGreaterThan(0.8);
    expect(tokens / USUAL_PREFIX).toBeLessThan(1);
  });

  it("has the assumed one, within the server's maximum if it reports only that", () => {
    expect(ask({ most: 131_072 })).toMatchObject({ model: { contextWindow: 32_000 } });
    expect(ask({ most: 16_000 })).toMatchObject({
      model: { contextWindow: 16_000 },
      notes: [expect.stringContaining("supports 16000 tokens, but not how many it is served with")],
    });
  });
});
