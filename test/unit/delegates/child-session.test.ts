import { describe, expect, it } from "vitest";
import { agentConfigSchema, runConfigSchema } from "../../../activities/config/agent-config.ts";
import { resolveRun } from "../../../activities/config/resolve-run.ts";
import { childConfig, toChildId } from "../../../activities/delegates/open-delegate.ts";
import {
  delegateResult,
  outcomeOfDelegate,
  type EndedDelegate,
} from "../../../activities/delegates/delegate-result.ts";

function parentWith(delegate: object, models: object = {}) {
  const resolved = resolveRun(
    agentConfigSchema.parse({ delegate, models, limits: { maxCostUsd: 5 } }),
    "gpt-4o",
  );
  if (!resolved.ok) throw new Error(resolved.message);
  return resolved.run;
}

function configOf(parent = parentWith({}), input: object = {}, delegated = 0) {
  if (parent.delegate === undefined) throw new Error("It cannot delegate.");
  return childConfig(parent, parent.delegate, { task: "t", access: "read", ...input }, delegated);
}

describe("a delegate's settings", () => {
  it("are its parent's, with its own step limit and no delegates", () => {
    const parent = { ...parentWith({ maxSteps: 20 }), systemPrompt: "own words" };
    const own = configOf(parent, { max_steps: 50 });
    expect(own).toMatchObject({
      ok: true,
      config: { model: "openai/gpt-4o", systemPrompt: "own words", limits: { maxSteps: 20, maxCostUsd: 5 } },
    });
    expect(own.ok && own.config).not.toHaveProperty("delegate");
    expect(own.ok && runConfigSchema.parse(own.config)).toEqual(own.ok && own.config);
    expect(configOf(parent, { max_steps: 3 })).toMatchObject({ config: { limits: { maxSteps: 3 } } });
  });

  it("use the configured or requested model, and no fallback of another model's", () => {
    const models = { "gpt-4o": { fallback: ["openai/gpt-4.1"] } };
    const parent = parentWith({ model: "gpt-4.1-mini" }, models);
    const other = configOf(parent);
    expect(other).toMatchObject({ config: { model: "openai/gpt-4.1-mini" } });
    expect(other.ok && other.config.fallback).toBeUndefined();
    const same = configOf(parent, { model: "openai/gpt-4o" });
    expect(same.ok && same.config.fallback?.map(({ model }) => model)).toEqual(["openai/gpt-4.1"]);
    expect(configOf(parent, { model: "openai/o3" })).toEqual({
      ok: false,
      message:
        '"openai/o3" is not one of this session\'s models: openai/gpt-4o, openai/gpt-4.1-mini, openai/gpt-4.1.',
    });
  });

  it("are refused if they are too many, or may not write", () => {
    expect(configOf(parentWith({ maxPerSession: 2 }), {}, 2)).toMatchObject({ ok: false });
    expect(configOf(parentWith({ access: ["read"] }), { access: "write" })).toMatchObject({ ok: false });
  });
});

it("a delegate is named after its call, and gets a new name after a reset", () => {
  expect(toChildId({ sessionId: "a", epoch: 1, step: 12, index: 0 })).toBe("a.s12c0");
  expect(toChildId({ sessionId: "a", epoch: 2, step: 12, index: 0 })).toBe("a.s12c0e2");
});

describe("a delegate's result", () => {
  const END: EndedDelegate = {
    child: "a.s1c0",
    status: "completed",
    steps: 3,
    costUsd: 0.01,
    answer: "It is done.",
    error: undefined,
    closed: "completed",
    stopped: undefined,
  };
  const NONE = { applied: [], notApplied: [], left: [] };
  const shown = (end: Partial<EndedDelegate>, files: Parameters<typeof delegateResult>[1] = NONE) =>
    delegateResult({ ...END, ...end }, files, { handle: "s1c0", maxChars: 8_000 });

  it("is its last answer under a line with its outcome", () => {
    expect(shown({}).text).toBe(
      "[Delegate a.s1c0: finished; 3 steps, $0.0100. Its last answer:]\n\nIt is done.",
    );
    expect(shown({ status: "max_steps", limit: "cost" }).text).toContain("at the limit of cost");
    expect(shown({ status: "max_steps", limit: "deadline" }).text).toContain("at its deadline");
    expect(shown({ status: "failed", error: { type: "Stuck", message: "in circles" } }).text).toContain(
      "failed (Stuck: in circles)",
    );
    expect(shown({ status: "cancelled" }).text).toContain("cancelled by the user");
    expect(shown({ status: "active", closed: "terminated", answer: "" }).text).toContain(
      "It gave no answer.",
    );
  });

  it("of a failure or a cancel is an error, of a limit is not", () => {
    expect(outcomeOfDelegate({ ...END, status: "max_steps" })).toBe("completed");
    expect(outcomeOfDelegate({ ...END, status: "failed" })).toBe("error");
    expect(outcomeOfDelegate({ ...END, status: "cancelled", stopped: "interrupt" })).toBe("interrupted");
  });

  it("keeps a long answer whole, and lists the files that were not merged", () => {
    const long = shown({ answer: "x".repeat(9_000) });
    expect(long.truncated).toBe(true);
    expect(long.text.length).toBeLessThan(8_200);
    expect(long.whole).toBe("x".repeat(9_000));
    const bytes = Buffer.from("mine");
    const left = [
      { path: "a.txt", base: undefined, child: { hash: "h", mode: 0o644 }, baseBytes: undefined, bytes },
    ];
    const files = {
      applied: ["b.txt"],
      notApplied: [{ path: "a.txt", reason: "it was changed here meanwhile" }],
      left,
    };
    const result = delegateResult(END, files, { handle: "s1c0", maxChars: 8_000 });
    expect(result.text).toContain("Files applied (1): b.txt");
    expect(result.text).toContain("read_output s1c0\n- a.txt: it was changed here meanwhile");
    expect(result.whole).toContain("--- a.txt (as the delegate left it)\nmine");
  });
});
