import { describe, expect, it } from "vitest";
import { composeSummary } from "../../activities/compaction/compose-summary.ts";
import type { StoredMessage } from "../../activities/contract/message.ts";
import { checkRawAnswer, lostFrom } from "../../activities/compaction/summary-check.ts";
import { parseSections } from "../../activities/compaction/summary-document.ts";
import { summaryPrompt } from "../../activities/compaction/summary-prompt.ts";
import { estimateText } from "../../activities/text/tokens.ts";
import { toolRegistry } from "../../activities/tools/index.ts";
import type { ParsedRequest, Reply, WireItem } from "../support/model-server/wire.ts";
import { FLASHCARDS } from "../../examples/rehearsal/flashcards/last-steps.ts";
import { callId, findPosition, createRehearsal } from "../../examples/rehearsal/rehearsal.ts";
import type { ScriptCall } from "../../examples/rehearsal/script-step.ts";

const TOOL = { name: "bash", description: "", schema: {} };
const said = (role: "user" | "assistant", text: string): WireItem => ({
  type: "message",
  role,
  parts: [{ type: "text", text }],
});
const called = (id: string, result = "done"): WireItem[] => [
  { type: "call", callId: id, name: "bash", arguments: "{}" },
  { type: "result", callId: id, parts: [{ type: "text", text: result }] },
];
const request = (items: readonly WireItem[], more: Partial<ParsedRequest> = {}): ParsedRequest => ({
  api: "responses",
  model: "flashcards",
  stream: true,
  system: "You are a coding agent.",
  items,
  tools: [TOOL],
  maxOutputTokens: 2_000,
  cacheKey: "session",
  raw: {},
  headers: {},
  bytes: 0,
  inputTokens: 0,
  ...more,
});
const task = said("user", "Build a flashcard application.");
const play = () => createRehearsal({ script: FLASHCARDS, delayMs: 0 });
const words = (reply: Reply) =>
  (reply.parts ?? []).map((part) => (part.type === "text" ? part.text : "")).join("");
const ids = (reply: Reply) =>
  (reply.parts ?? []).flatMap((part) => (part.type === "call" ? [part.callId] : []));

describe("the script", () => {
  it("has more than 60 steps, of which only the last makes no calls", () => {
    expect(FLASHCARDS.length).toBeGreaterThan(60);
    expect(FLASHCARDS.slice(0, -1).filter((step) => step.calls.length === 0)).toEqual([]);
    expect(FLASHCARDS.at(-1)?.calls).toEqual([]);
  });

  it("has a different text in each step, which identifies the step", () => {
    const lines = FLASHCARDS.map((step) => step.text.split("\n")[0] ?? "");
    const within = lines.filter((line, at) =>
      lines.some((other, index) => index !== at && other.includes(line)),
    );
    expect(within).toEqual([]);
  });

  it("calls each tool as its schema requires", () => {
    const wrong = FLASHCARDS.flatMap((step) => step.calls).filter((call) => {
      const tool = toolRegistry.get(call.name);
      return tool?.input.safeParse(inputOf(call)).success !== true;
    });
    expect(wrong).toEqual([]);
  });

  it("keeps each answer within 2,000 tokens, and fills a 16k window three times", () => {
    const sizes = FLASHCARDS.map((step) =>
      estimateText(step.text + step.calls.map((call) => JSON.stringify(inputOf(call))).join("")),
    );
    expect(Math.max(...sizes)).toBeLessThan(1_900);
    expect(sizes.reduce((sum, size) => sum + size, 0)).toBeGreaterThan(20_000);
  });
});

describe("the rehearsal model", () => {
  it("says first that no model is configured, what it plays instead, and what to do", () => {
    const first = words(play()(request([said("user", "Port my parser to Rust.")])));
    expect(first).toMatch(/^No model is configured: this is the rehearsal model/);
    expect(first).toContain("instead of your task (“Port my parser to Rust.”)");
    expect(first).toContain("OPENAI_API_KEY");
    expect(words(play()(request([task])))).not.toContain("instead of your task");
  });

  it("returns the next step by the highest call in view, so that a restart changes nothing", () => {
    const items = [task, ...called("call_fc001_0"), ...called("call_fc002_0")];
    expect(ids(play()(request(items)))).toEqual(["call_fc003_0", "call_fc003_1"]);
    expect(ids(play()(request(items)))).toEqual(ids(play()(request(items))));
    expect(ids(play()(request(items.slice(0, 3))))).toEqual(["call_fc002_0"]);
  });

  it("continues by a summary's mark if all calls are compacted", () => {
    const summary = said(
      "assistant",
      "# Session Summary (Compaction Round 2)\nRehearsal position: step 41 of 81.",
    );
    expect(ids(play()(request([task, summary])))[0]).toBe("call_fc042_0");
    expect(ids(play()(request([task, summary, ...called("call_fc044_0")])))[0]).toBe("call_fc045_0");
  });

  it("continues by its last answer if nothing is in view, for each session separately", () => {
    const model = play();
    model(request([task, ...called("call_fc009_0")]));
    expect(ids(model(request([task])))[0]).toBe("call_fc011_0");
    expect(ids(model(request([task], { cacheKey: "other" })))[0]).toBe("call_fc001_0");
  });

  it("quotes guidance in one sentence and continues", () => {
    const reply = play()(request([task, ...called("call_fc002_0"), said("user", "Use tabs, please.")]));
    expect(words(reply)).toMatch(/^You said “Use tabs, please.”: noted/);
    expect(ids(reply)[0]).toBe("call_fc003_0");
    const later = [task, said("user", "Use tabs, please."), ...called("call_fc003_0")];
    expect(words(play()(request(later)))).not.toContain("You said");
  });

  it("names an error that the script does not expect, and continues", () => {
    const reply = play()(request([task, ...called("call_fc006_0", "1 failed\n[exit code 1]")]));
    expect(words(reply)).toContain("not what the script expects (1 failed [exit code 1])");
    expect(ids(reply)[0]).toBe("call_fc007_0");
    const expected = FLASHCARDS.findIndex((step) => step.calls[0]?.fails === true) + 1;
    const meant = called(callId(expected, 0, 0), "not ok\n[exit code 1]");
    expect(words(play()(request([task, ...meant])))).not.toContain("not what");
  });

  it("repeats a step that was cut off, a limited number of times", () => {
    const once = play()(request([task, ...called("call_fc005_0", "half [interrupted]")]));
    expect(ids(once)[0]).toBe("call_fc005r1_0");
    const again = [
      task,
      ...called("call_fc005_0", "[interrupted]"),
      ...called("call_fc005r1_0", "Outcome unknown: ?"),
    ];
    expect(ids(play()(request(again)))[0]).toBe("call_fc005r2_0");
    const thrice = [...again, ...called("call_fc005r2_0", "[interrupted]")];
    expect(ids(play()(request(thrice)))[0]).toBe("call_fc006_0");
  });

  it("ends with a text, and answers honestly after its end", () => {
    const lastCalls = called(callId(FLASHCARDS.length - 1, 0, 0));
    const end = play()(request([task, ...lastCalls]));
    expect(ids(end)).toEqual([]);
    expect(words(end)).toContain("This was the **rehearsal model**");
    const after = play()(
      request([task, ...lastCalls, said("assistant", words(end)), said("user", "Add sync.")]),
    );
    expect(words(after)).toMatch(/^You said “Add sync.”. The rehearsal has no more script: nothing was done/);
  });

  it("describes the progress when no tools are offered", () => {
    const summary = said("assistant", "## Key Technical Decisions\nnone");
    const items = [
      task,
      summary,
      ...called("call_fc030_0"),
      said("user", "The step limit is reached: say where things stand."),
    ];
    const reply = words(play()(request(items, { tools: [] })));
    expect(reply).toMatch(/^I stopped after 30 of/);
    expect(reply).toContain("Still open: Storage in a JSON file");
  });
});

describe("the rehearsal model's summaries", () => {
  const rowsUpTo = (step: number): StoredMessage[] =>
    FLASHCARDS.slice(0, step).flatMap((scripted, at) => {
      const common = { step: at + 1, tokens: 100, prunedStep: undefined };
      const calls = scripted.calls.map((call, index) => ({
        type: "tool-call" as const,
        toolCallId: callId(at + 1, 0, index),
        toolName: call.name,
        input: inputOf(call),
      }));
      const results = calls.map(({ toolCallId, toolName }, index) => ({
        ...common,
        role: "tool" as const,
        kind: "tool" as const,
        slot: `tool:${index}`,
        sequence: at * 10 + index + 2,
        position: at * 10 + index + 2,
        content: [
          { type: "tool-result" as const, toolCallId, toolName, outcome: "completed" as const, text: "ok" },
        ] as const,
      }));
      const answer = {
        ...common,
        role: "assistant" as const,
        kind: "answer" as const,
        slot: "assistant",
        sequence: at * 10 + 1,
        position: at * 10 + 1,
        content: [{ type: "text" as const, text: scripted.text }, ...calls],
      };
      return [answer, ...results];
    });
  const summarise = (rows: readonly StoredMessage[], previous: string | undefined) => {
    const prompt = summaryPrompt({ rows, previous, resultChars: 500, maxTokens: 12_000 });
    return words(play()(request([said("user", prompt.text)], { system: prompt.system, tools: [] })));
  };

  it("pass the project's own check, and a later one keeps everything in the one before", () => {
    let previous: string | undefined;
    for (const [round, [from, to]] of (
      [
        [0, 20],
        [20, 40],
        [40, 60],
        [60, 79],
      ] as const
    ).entries()) {
      const replaced = rowsUpTo(to).slice(rowsUpTo(from).length);
      const text = summarise(replaced, previous);
      expect(checkRawAnswer({ text, finish: "stop", hasToolCall: false })).toBeUndefined();
      expect(text).toContain(`Rehearsal position: step ${to} of ${FLASHCARDS.length}`);
      const material = { round: round + 1, replaced, kept: [], previous, maxTokens: 1_600 };
      const whole = composeSummary(material, parseSections(text));
      expect(previous === undefined ? undefined : lostFrom(previous, whole)).toBeUndefined();
      expect(estimateText(whole)).toBeLessThan(1_600);
      expect(findPosition(request([said("assistant", whole)]), FLASHCARDS)?.step).toBe(to);
      previous = whole;
    }
  });
});

function inputOf(call: ScriptCall): unknown {
  return typeof call.input === "function"
    ? call.input(['Started in the background, id "s1c0".'])
    : call.input;
}
