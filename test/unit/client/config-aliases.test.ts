/** The requirements' spellings of settings, in addition to the documented ones (requirement D2). */
import { describe, expect, it } from "vitest";
import { budgetOf, runPolicyOf } from "../../../activities/config/run-policy.ts";
import { agentConfigSchema, type RunConfig } from "../../../activities/config/agent-config.ts";
import { parseConfigFile } from "../../../client/config/config-file.ts";

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

describe("context options", () => {
  const runOf = (options: object, strategy = "reactive-overflow"): RunConfig => ({
    ...agentConfigSchema.parse({ context: { strategy, options } }),
    tools: {},
    model: "openai/x",
    contextWindow: 128_000,
    maxOutput: 4_000,
    api: "responses",
    input: ["text"],
  });
  const policyOf = (config: RunConfig) =>
    runPolicyOf(config, 0, { searchAttributes: false, taskQueues: {}, prefix: { system: 0, tools: 0 } });

  it("set the trigger: a share, a full window, or a person alone", () => {
    const triggerOf = (options: object, strategy?: string) =>
      budgetOf(runOf(options, strategy), 0).triggerTokens;
    expect(triggerOf({})).toBe(93_600);
    expect(triggerOf({}, "proactive-threshold")).toBe(58_500);
    expect(triggerOf({ trigger: 0.4 })).toBe(46_800);
    expect(triggerOf({ trigger: "overflow" })).toBe(117_000);
    expect(policyOf(runOf({ trigger: "manual" }))).toMatchObject({ autoCompaction: false });
    expect(policyOf(runOf({ trigger: "overflow" }))).not.toHaveProperty("autoCompaction");
  });

  it("set what prune protects, and the least it hides", () => {
    const { pruneProtectTokens, pruneMinimumTokens } = budgetOf(
      runOf({ pruneProtect: 5_000, pruneMinimum: 1_000 }),
      0,
    );
    expect([pruneProtectTokens, pruneMinimumTokens]).toEqual([5_000, 1_000]);
  });
});
