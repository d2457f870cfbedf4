import { expect, test } from "vitest";
import { emptyFolder, longhaul } from "../support/commands/longhaul.ts";

test("lists what it found and where each setting comes from; secrets are masked", async () => {
  const { out, err } = await longhaul(["doctor", "--json"]);
  expect(err).toBe("");
  const { checks, settings } = JSON.parse(out) as {
    checks: { name: string; ok: boolean; found: string }[];
    settings: { name: string; value: string; source: string }[];
  };
  expect(checks.filter(({ ok }) => ok).length).toBeGreaterThan(2);
  expect(checks.find(({ name }) => name === "Model server")).toMatchObject({
    ok: true,
    found: expect.stringContaining("gpt-4o has a window of 128000 tokens"),
  });
  expect(settings.find(({ name }) => name === "model")).toMatchObject({
    value: "gpt-4o",
    source: "environment",
  });
  expect(out).not.toContain("sk-commands");
});

test("a missing service is 4, a wrong configuration 2; each with a remedy", async () => {
  const missing = await longhaul(["doctor"], { environment: { TEMPORAL_ADDRESS: "127.0.0.1:1" } });
  expect(missing.code).toBe(4);
  expect(missing.out).toContain("127.0.0.1:1");
  const wrong = await longhaul(["doctor", "--config", "missing.yaml"], { cwd: emptyFolder() });
  expect(wrong.code).toBe(2);
});
