import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { resolveConfig } from "../../../client/config.ts";

const key = { OPENAI_API_KEY: "sk-test" };
let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "longhaul-config-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const file = (text: string, name = "longhaul.yaml") => writeFileSync(join(folder, name), text);

describe("resolveConfig", () => {
  it("plays the rehearsal without a key, and says so", () => {
    const config = resolveConfig({}, {}, folder);
    expect(config).toMatchObject({ rehearsal: true, run: { model: "rehearsal/flashcards" } });
  });

  it("takes the environment before the file, and flags before both", () => {
    file("model: openai/gpt-4o\nlimits: {maxSteps: 7}\nsandbox: {image: file:1}\n");
    expect(resolveConfig({}, key, folder).run).toMatchObject({
      model: "openai/gpt-4o",
      limits: { maxSteps: 7 },
      sandbox: { image: "file:1" },
    });
    const environment = { ...key, LONGHAUL_MODEL: "openai/gpt-4.1", SANDBOX_IMAGE: "env:1" };
    expect(resolveConfig({}, environment, folder).run).toMatchObject({
      model: "openai/gpt-4.1",
      sandbox: { image: "env:1" },
    });
    expect(resolveConfig({ model: "openai/gpt-5", maxSteps: 3 }, environment, folder).run).toMatchObject({
      model: "openai/gpt-5",
      limits: { maxSteps: 3 },
    });
  });

  it("keeps the file's other settings where a flag changes one of a group", () => {
    file("limits: {maxSteps: 7, silenceTimeout: 1234}\n");
    expect(resolveConfig({ maxSteps: 3 }, key, folder).run.limits).toMatchObject({
      maxSteps: 3,
      silenceTimeout: 1234,
    });
  });

  it("refuses a model that nobody knows with the lines to add [U21]", () => {
    expect(() => resolveConfig({ model: "openai/gpt-99" }, key, folder)).toThrow(/contextWindow:/);
    file("models: {openai/gpt-99: {contextWindow: 50000}}\n");
    expect(resolveConfig({ model: "openai/gpt-99" }, key, folder).run.contextWindow).toBe(50_000);
  });

  it("asks for the key of a named model with exit code 4, unless the workers are elsewhere", () => {
    const order = { model: "openai/gpt-5" };
    expect(() => resolveConfig(order, {}, folder)).toThrow(expect.objectContaining({ exitCode: 4 }));
    expect(resolveConfig({ ...order, setup: false }, {}, folder).run.model).toBe("openai/gpt-5");
    expect(resolveConfig(order, { LONGHAUL_NO_SETUP: "1" }, folder).run.model).toBe("openai/gpt-5");
  });

  it("reads no configuration from the workspace, and says so", () => {
    file("model: openai/gpt-4o\n");
    const config = resolveConfig({ workspace: "." }, key, folder);
    expect(config.file).toBeUndefined();
    expect(config.run.model).not.toBe("openai/gpt-4o");
    expect(config.notes.join()).toContain("is not read");
    mkdirSync(join(folder, "project"));
    expect(resolveConfig({ workspace: "project" }, key, folder).run.model).toBe("openai/gpt-4o");
  });

  it("refuses a named file that is not there", () => {
    expect(() => resolveConfig({ config: "none.yaml" }, key, folder)).toThrow(/no configuration file none/);
    expect(() => resolveConfig({}, { ...key, LONGHAUL_CONFIG: "none.yaml" }, folder)).toThrow(
      expect.objectContaining({ exitCode: 2 }),
    );
  });
});
