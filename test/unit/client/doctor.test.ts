import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { DEFAULT_MODEL } from "../../../activities/config/models.ts";
import { doctorText } from "../../../client/commands/doctor.ts";
import { describeSettings } from "../../../client/config/config.ts";
import { modelFinding } from "../../../client/setup/model-check.ts";
import { workerSettingsFinding } from "../../../client/setup/doctor.ts";
import { emptyFolder } from "../../support/empty-folder.ts";

it("doctor marks differently what works, what is missing, and what was not measured", () => {
  const text = doctorText(
    {
      checks: [
        { name: "good", ok: true, found: "there" },
        { name: "open", ok: false, found: "a rule is missing", fix: "build it" },
        { name: "unknown", ok: true, warning: true, found: "not measured" },
      ],
      settings: [],
    },
    (_, plain) => plain,
  );
  expect(text.split("\n").slice(0, 4)).toEqual([
    "✓ good     there",
    "✗ open     a rule is missing",
    "           → build it",
    "! unknown  not measured",
  ]);
});

describe("what doctor says of the model that a session would ask", () => {
  const found = (settings: object, environment: Record<string, string> = {}) => {
    const config = join(emptyFolder(), "longhaul.yaml");
    writeFileSync(config, JSON.stringify(settings));
    return modelFinding(describeSettings({ config }, environment).choice!, environment, "http://r/v1");
  };
  const acme = {
    providers: { acme: { baseUrl: "http://x/v1", keyEnv: "ACME_API_KEY" }, lab: { baseUrl: "http://y/v1" } },
  };

  it("is the rehearsal if none is chosen and nothing else is there", () => {
    expect(found({})).toEqual({
      name: "Model",
      ok: true,
      found:
        "no model is chosen and OPENAI_API_KEY is not set: the rehearsal model plays a written script at http://r/v1",
    });
  });

  it("names providers that are there and not used, with what to do", () => {
    const { warning, fix = "" } = found(acme, { ANTHROPIC_API_KEY: "k" });
    expect(warning).toBe(true);
    expect(fix).toContain("--model acme/NAME uses it, once ACME_API_KEY is set");
    expect(fix).toContain("--model lab/NAME uses it (");
    expect(fix).toContain("ANTHROPIC_API_KEY is set: --model anthropic/NAME");
  });

  it("is the one that is chosen, with its key and its server", () => {
    const chosen = { ...acme, model: "acme/large" };
    expect(found(chosen, { ACME_API_KEY: "k" })).toEqual({
      name: "Model",
      ok: true,
      found: "acme/large, asked at http://x/v1; ACME_API_KEY is set",
    });
    expect(found(chosen)).toMatchObject({
      ok: false,
      found: "acme/large, asked at http://x/v1; ACME_API_KEY is not set",
      fix: "Set ACME_API_KEY.",
    });
    expect(found(chosen, { LONGHAUL_NO_SETUP: "1" })).toMatchObject({
      ok: true,
      found: "acme/large, asked at http://x/v1; the workers have the key",
    });
    expect(found({ model: "ollama/qwen3" })).toMatchObject({
      ok: true,
      found: "ollama/qwen3, asked at http://127.0.0.1:11434/v1; it needs no key",
    });
    const openai = { OPENAI_API_KEY: "k" };
    expect(found({}, openai).found).toBe(`openai/${DEFAULT_MODEL}; OPENAI_API_KEY is set`);
    expect(found({}, { OPENAI_BASE_URL: "http://me:secret@z/v1" }).found).toMatch(
      /asked at http:\/\/.*z\/v1; it needs/,
    );
    expect(found({}, { OPENAI_BASE_URL: "http://me:secret@z/v1" }).found).not.toContain("secret");
  });
});

describe("what doctor says of the settings of a worker that this shell would start", () => {
  const policy = (text: string) => {
    const file = join(emptyFolder(), "policy.yaml");
    writeFileSync(file, text);
    return file;
  };
  const found = (environment: Record<string, string>) =>
    workerSettingsFinding({ DATABASE_URL: "postgres://x", ...environment });

  it("is a policy file that no worker could use", async () => {
    const missing = join(emptyFolder(), "none.yaml");
    expect(await found({ LONGHAUL_POLICY: missing })).toMatchObject({
      ok: false,
      found: expect.stringMatching(/^LONGHAUL_POLICY=.*none\.yaml cannot be used: ENOENT/) as string,
    });
    expect((await found({ LONGHAUL_POLICY: policy("network: [none]\n") }))?.found).toContain(
      "did you mean networks?",
    );
  });

  it("is any other value that no worker could use", async () => {
    expect((await found({ LONGHAUL_LOG_LEVEL: "loud" }))?.found).toContain("LONGHAUL_LOG_LEVEL");
    expect((await found({ LONGHAUL_CODEC_KEYS: "loud" }))?.found).not.toContain("nothing was started");
  });

  it("is the policy that is in force, if there is one", async () => {
    const file = policy("networks: [none]\n");
    expect(await found({ LONGHAUL_POLICY: file })).toMatchObject({
      ok: true,
      found: expect.stringContaining(file) as string,
    });
    expect(await found({})).toEqual({ ok: true, found: "can be used" });
  });
});
