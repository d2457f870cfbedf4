import { describe, expect, it } from "vitest";
import { parseConfigFile } from "../../../client/config/config-file.ts";
import { ClientError } from "../../../client/console/errors.ts";

function mistakesOf(text: string): string {
  try {
    parseConfigFile("longhaul.yaml", text);
  } catch (error) {
    if (error instanceof ClientError && error.exitCode === 2) return error.message;
    throw error;
  }
  return "none";
}

describe("parseConfigFile", () => {
  it("names the line, the column and the nearest known key of an unknown one", { tags: ["U20"] }, () => {
    expect(mistakesOf("# mine\ncontex:\n  strategy: threshold-rounds\n")).toContain(
      "longhaul.yaml:2:1: unknown key contex: did you mean context?",
    );
    expect(mistakesOf("sandbox:\n  image: x\n  netwrok: none\n")).toContain(
      "longhaul.yaml:3:3: unknown key sandbox.netwrok: did you mean network?",
    );
  });

  it.each([
    [
      "keys without number",
      Array.from({ length: 200_000 }, (_, place) => `k${place}: 1`).join("\n"),
      /at most/,
    ],
    ["nesting without end", `a: ${"[".repeat(60_000)}`, /longhaul\.yaml:1:\d+: it is nested too deeply/],
    ["groups in groups", Array.from({ length: 350 }, (_, depth) => `${" ".repeat(depth)}a:`).join("\n"), /./],
    [
      "references that grow",
      ["a0: &a0 [1]"]
        .concat(Array.from({ length: 30 }, (_, n) => `a${n + 1}: &a${n + 1} [${`*a${n},`.repeat(10)}]`))
        .join("\n"),
      /longhaul\.yaml.*alias/is,
    ],
  ])("refuses %s at once, with the file's name", (_what, text, expected) => {
    const startMs = performance.now();
    expect(mistakesOf(text)).toMatch(expected);
    expect(performance.now() - startMs).toBeLessThan(20_000);
  });

  it("finds unknown keys below user-defined names", () => {
    expect(mistakesOf("models:\n  openai/mine:\n    contextWindow: 8000\n    maxOuput: 5\n")).toContain(
      "longhaul.yaml:4:5: unknown key models.openai/mine.maxOuput: did you mean maxOutput?",
    );
  });

  it("suggests the nearest tool for an unknown one, and refuses settings that a tool lacks", () => {
    expect(mistakesOf("tools:\n  edit_fil:\n    limits: { maxChars: 5000 }\n")).toContain(
      "longhaul.yaml:2:3: unknown key tools.edit_fil: did you mean edit_file?",
    );
    expect(mistakesOf("tools:\n  write_file:\n    timeout: 5000\n")).toContain(
      "longhaul.yaml:3:5: unknown key tools.write_file.timeout: the known keys are limits",
    );
    expect(mistakesOf("tools:\n  bash:\n    limits:\n      maxMatches: 5\n")).toContain(
      "longhaul.yaml:4:7: unknown key tools.bash.limits.maxMatches: the known keys are maxTimeout, maxChars",
    );
    expect(mistakesOf("tools:\n  grep_content:\n    timeout: 5000\n")).toBe("none");
  });

  it("lists the known keys if none is near", () => {
    expect(mistakesOf("limits:\n  zebra: 1\n")).toMatch(
      /unknown key limits\.zebra: the known keys are maxSteps, /,
    );
  });

  it("reports what is missing and what was given, without the schema's wording", () => {
    const found = mistakesOf("models:\n  a/b:\n    price: { input: 1, output: many }\n");
    expect(found).toContain("models.a/b.price.cached: is missing: expected a number");
    expect(found).toContain("models.a/b.price.output: expected a number, not text");
    expect(found).not.toMatch(/undefined|received/);
  });

  it("lists every mistake with its place", () => {
    const found = mistakesOf("limits:\n  maxSteps: many\nsandbox:\n  memory: lots\n");
    expect(found).toContain("has 2 mistakes");
    expect(found).toContain("longhaul.yaml:2:13: limits.maxSteps: expected a number, not text");
    expect(found).toContain("longhaul.yaml:4:11: sandbox.memory");
  });

  it("names the line that is not YAML", () => {
    expect(mistakesOf("model: [x\nlimits: {a: 1\n")).toBe(
      "The configuration is not valid YAML.\nlonghaul.yaml:2:1: Flow sequence in block collection must be sufficiently indented and end with a ]",
    );
  });

  it("accepts an empty file as no settings", () => {
    expect(parseConfigFile("longhaul.yaml", "")).toEqual({});
    expect(parseConfigFile("longhaul.yaml", "# nothing yet\n")).toEqual({});
  });
});
