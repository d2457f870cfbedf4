/** The requirements' spellings of settings, in addition to the documented ones (requirement D2). */
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { SPELLINGS, parseConfigFile, settingPlace } from "../../../client/config/config-file.ts";
import { calculateBudget } from "../../../activities/config/budget.ts";
import { toRunPolicy } from "../../../activities/config/run-policy.ts";
import { agentConfigSchema, type RunConfig } from "../../../activities/config/agent-config.ts";
import { askedAs } from "../../support/run-config.ts";

const parsed = (text: string) => agentConfigSchema.parse(parseConfigFile("longhaul.yaml", text));

describe("aliases in longhaul.yaml", () => {
  it("are context.compression with its strategy and options", () => {
    const { context } = parsed(
      "context: {compression: {strategy: threshold-rounds, preserveLastNTurns: 3, options: {keepMessages: 6}}}",
    );
    expect(context).toEqual({
      strategy: "threshold-rounds",
      options: { preserveLastNTurns: 3, keepMessages: 6 },
    });
  });

  it("are the limits of bash, read and grep", () => {
    const { tools } = parsed(
      "tools: {bash: {maxOutputChars: 9000, timeout: 5000}, read: {maxLines: 50, maxLineChars: 80}, grep: {maxMatches: 7}}",
    );
    expect(tools).toEqual({
      bash: { timeout: 5_000, limits: { maxChars: 9_000 } },
      read_file: { limits: { maxLines: 50, maxLineChars: 80 } },
      grep_content: { limits: { maxMatches: 7 } },
    });
  });

  it("give way to the documented names", () => {
    const { context, tools } = parsed(
      "context: {strategy: deterministic, compression: {strategy: threshold-rounds}}\n" +
        "tools: {bash: {maxOutputChars: 1, limits: {maxChars: 2}}}",
    );
    expect(context.strategy).toBe("deterministic");
    expect(tools.bash?.limits?.maxChars).toBe(2);
  });

  it.each([
    ["context: {compression: {keepMesages: 4}}", "context.options.keepMesages: did you mean keepMessages?"],
    ["tools: {read: {maxMatches: 4}}", "tools.read_file.limits.maxMatches"],
    ["context: {compression: 5}", "unknown key context.compression"],
  ])("are refused if nothing has such a setting: %s", (text, message) => {
    expect(() => parsed(text)).toThrow(message);
  });
});

describe("the settings that the second design prints (requirement D2)", () => {
  const printed = readFileSync(new URL("../../fixtures/printed-settings.yaml", import.meta.url), "utf8");

  it("are accepted to the letter", () => {
    const { context, tools } = parsed(printed);
    expect(context).toEqual({
      strategy: "reactive-overflow",
      options: { preserveLastNTurns: 2, pruneProtect: 40_000 },
    });
    expect(tools).toEqual({
      bash: { limits: { maxChars: 30_000 } },
      read_file: { limits: { maxLines: 2_000, maxLineChars: 2_000 } },
    });
  });

  const lines = printed.split("\n");
  const settings = lines.flatMap((line, at) => (/: \w/.test(line) ? [{ line, at }] : []));

  it.each(settings)("have the line of a wrong value: $line", ({ line, at }) => {
    const wrong = lines.with(at, line.replace(/: .*/, ": { x: 1 }")).join("\n");
    expect(() => parsed(wrong)).toThrow(`longhaul.yaml:${at + 1}:`);
  });

  it.each(settings)("have the line of a misspelt name, and what is meant: $line", ({ line, at }) => {
    const [, indent = "", name = ""] = /^( *)(\w+)/.exec(line) ?? [];
    const misspelt = `${name.slice(0, -2)}${name.at(-1)}${name.at(-2)}`;
    const wrong = lines.with(at, line.replace(name, misspelt)).join("\n");
    const place = new RegExp(
      `longhaul.yaml:${at + 1}:${indent.length + 1}: unknown key [\\w.]*${misspelt}: did you mean ${name}`,
    );
    expect(() => parsed(wrong)).toThrow(place);
  });
});

describe("each second spelling", () => {
  const paths = SPELLINGS.map(({ from, to }) => {
    const any = from[0] === "tools" ? "read_file" : "trigger";
    const named = from.map((part) => (part === "*" ? any : part));
    return { from: named.join("."), to: to.map((part) => (part === "*" ? any : part)), named };
  }).filter(({ to }) => to.at(-1) !== "maxMatches");

  it.each(paths)("has a wrong value reported at its own line: $from", ({ named }) => {
    const text = `model: a/b\n${blockOf(named, ["- 1"])}`;
    expect(() => parsed(text)).toThrow(`longhaul.yaml:${named.length + 1}:`);
  });

  it.each(paths)("is found by its documented name: $from", ({ named, to }) => {
    expect(settingPlace("longhaul.yaml", `# mine\n${blockOf(named, ["- 1"])}`, to)).toBe(
      `longhaul.yaml:${named.length + 1}:${(named.length - 1) * 2 + 1}`,
    );
  });

  const blockOf = (path: readonly string[], value: readonly string[]) =>
    [
      ...path.map((part, depth) => `${"  ".repeat(depth)}${part}:`),
      ...value.map((line) => "  ".repeat(path.length) + line),
    ].join("\n");
});

describe("context options", () => {
  const runOf = (options: object, strategy = "threshold-turns"): RunConfig => ({
    ...agentConfigSchema.parse({ context: { strategy, options } }),
    tools: {},
    ...askedAs("openai/x"),
    contextWindow: 128_000,
    maxOutput: 4_000,
    api: "responses",
    input: ["text"],
  });
  const policyOf = (config: RunConfig) =>
    toRunPolicy(config, 0, {
      searchAttributes: false,
      taskQueues: {},
      timeouts: {},
      prefix: { system: 0, tools: 0 },
    });

  it("set the trigger: a share, a full window, or a person alone", () => {
    const triggerOf = (options: object, strategy?: string) =>
      calculateBudget(runOf(options, strategy), 0).triggerTokens;
    expect(triggerOf({})).toBe(93_600);
    expect(triggerOf({}, "proactive-threshold")).toBe(58_500);
    expect(triggerOf({ trigger: 0.4 })).toBe(46_800);
    // The window less the room for the answer.
    expect(triggerOf({ trigger: "overflow" })).toBe(124_000);
    expect(triggerOf({}, "reactive-overflow")).toBe(124_000);
    expect(policyOf(runOf({ trigger: "manual" }))).toMatchObject({ autoCompaction: false });
    expect(policyOf(runOf({ trigger: "overflow" })).autoCompaction).toBeUndefined();
  });

  it("leave a resumed session that compacts on an overflow as it is, unless they say otherwise", () => {
    const returnOf = (options: object) =>
      calculateBudget(runOf(options, "reactive-overflow"), 0).returnTokens;
    expect(returnOf({})).toBeUndefined();
    expect(returnOf({ returnTrigger: 0.5 })).toBe(58_500);
  });

  it("say when old results are hidden: before a summary, after each step, or never", () => {
    const modeOf = (options: object) => {
      const { prune, budget } = policyOf(runOf(options));
      return { prune, first: budget.pruneFirst };
    };
    expect(modeOf({})).toEqual({ prune: "auto", first: {} });
    expect(policyOf({ ...runOf({}), contextWindow: 16_000 }).budget.pruneFirst).toMatchObject({
      trigger: 0.85,
    });
    expect(modeOf({ prune: "always" })).toEqual({ prune: "each-step", first: {} });
    expect(modeOf({ prune: "never" })).toEqual({ prune: "never", first: {} });
  });

  it("set what prune protects, and the least it hides", () => {
    const { pruneProtectTokens, pruneMinimumTokens } = calculateBudget(
      runOf({ pruneProtect: 5_000, pruneMinimum: 1_000 }),
      0,
    );
    expect([pruneProtectTokens, pruneMinimumTokens]).toEqual([5_000, 1_000]);
  });
});
