import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { emptyFolder, longhaul } from "../support/commands/longhaul.ts";
import { obey } from "../support/commands/obedient-model.ts";
import { startScriptedModel } from "../support/scripted-model.ts";

test("models lists the usable models, filtered, as a table and as JSON, and explains its ✓", async () => {
  const table = await longhaul(["models", "gpt-6.1-sol"]);
  expect(table).toMatchObject({ code: 0, err: "" });
  expect(table.out).toMatch(/^✓ +openai\/gpt-6\.1-sol +1\.1M /m);
  expect(table.out).toContain("✓ its key is set.");
  // A compatible server would answer for every provider without its own key.
  const environment = { OPENAI_BASE_URL: "" };
  const others = await longhaul(["models", "anthropic/claude-opus-5", "--json"], { environment });
  const { models } = JSON.parse(others.out) as { models: { model: string; usable: boolean }[] };
  expect(models.length).toBeGreaterThan(0);
  expect(models.every(({ model, usable }) => model.includes("anthropic/") && !usable)).toBe(true);
  const none = await longhaul(["models", "no-such-model"]);
  expect(none).toMatchObject({ code: 0, out: "", err: expect.stringContaining("no-such-model") });
});

test("a model in no table gets its server's window, and the first lines say so", async () => {
  const model = await startScriptedModel(obey, { models: { "local-coder": { window: 20_000 } } });
  onTestFinished(() => model.close());
  const cwd = emptyFolder();
  const config = `providers: {mine: {api: chat, baseUrl: "${model.baseUrl}"}}\n`;
  writeFileSync(join(cwd, "mine.yaml"), config);
  const flags = ["--config", "mine.yaml", "--model", "mine/local-coder", "--id", "served-window"];
  const { code, out, err } = await longhaul(["run", ...flags, "say: Small, and done."], { cwd });
  expect({ code, out }).toEqual({ code: 0, out: "Small, and done.\n" });
  expect(err).toContain(`its server ${model.baseUrl} gives it a window of 20000 tokens`);
  const context = await longhaul(["context", "served-window", "--json"]);
  expect(JSON.parse(context.out)).toMatchObject({ model: "mine/local-coder", window: 20_000 });
});
