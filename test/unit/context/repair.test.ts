import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { AssistantPart, Message } from "../../../activities/contract/message.ts";
import { faultOf, MISSING_RESULT_TEXT, repair } from "../../../activities/transcript/repair.ts";
import { calls, result, says, user } from "../../support/rows.ts";

const shape = (messages: readonly Message[]) =>
  messages.map((message) => {
    if (message.role === "tool") return `result ${message.content[0].toolCallId}: ${message.content[0].text}`;
    return `${message.role} ${message.content
      .map((part) => (part.type === "tool-call" ? part.toolCallId : part.type))
      .join(" ")}`;
  });

describe("repair", () => {
  it("returns a sound sequence unchanged [case 17]", () => {
    const sound = [user("go"), calls("", "a", "b"), result("a"), result("b"), says("done")];
    expect(repair(sound)).toEqual({ messages: sound, repairs: [] });
    expect(repair(sound).messages).toBe(sound);
  });

  it("gives a call without a result an interrupted one under the call's own id [case 17]", () => {
    const { messages, repairs } = repair([user("go"), calls("", "a"), user("and?")]);
    expect(shape(messages)).toEqual([
      "user text",
      "assistant a",
      `result a: ${MISSING_RESULT_TEXT}`,
      "user text",
    ]);
    expect(messages[2]).toMatchObject({ content: [{ outcome: "interrupted", toolName: "bash" }] });
    expect(repairs).toEqual([{ kind: "missing-result", toolCallId: "a" }]);
  });

  it("drops a result without a call [case 17]", () => {
    const { messages, repairs } = repair([user("go"), result("ghost"), says("done")]);
    expect(shape(messages)).toEqual(["user text", "assistant text"]);
    expect(repairs).toEqual([{ kind: "orphan-result", toolCallId: "ghost" }]);
  });

  it("moves a user message between a call and its result behind them [case 17]", () => {
    const { messages } = repair([user("go"), calls("", "a"), user("wait"), result("a", "R")]);
    expect(shape(messages)).toEqual(["user text", "assistant a", "result a: R", "user text"]);
  });

  it("moves an assistant message between a call and its result behind them [case 17]", () => {
    const { messages, repairs } = repair([calls("", "a"), says("hm"), result("a", "R")]);
    expect(shape(messages)).toEqual(["assistant a", "result a: R", "assistant text"]);
    expect(repairs).toEqual([{ kind: "moved-result", toolCallId: "a" }]);
  });

  it("keeps the first of two results with one id [case 17]", () => {
    const { messages, repairs } = repair([calls("", "a"), result("a", "first"), result("a", "second")]);
    expect(shape(messages)).toEqual(["assistant a", "result a: first"]);
    expect(repairs).toEqual([{ kind: "duplicate-result", toolCallId: "a" }]);
  });

  it("treats a result with a wrong id as an orphan and its call as unanswered [case 17]", () => {
    const { messages, repairs } = repair([calls("", "a"), result("b", "R")]);
    expect(shape(messages)).toEqual(["assistant a", `result a: ${MISSING_RESULT_TEXT}`]);
    expect(repairs.map((repair) => repair.kind).toSorted()).toEqual(["missing-result", "orphan-result"]);
  });

  it("fills in one of three results and keeps call order [case 17]", () => {
    const { messages } = repair([calls("", "a", "b", "c"), result("c", "C"), result("a", "A")]);
    expect(shape(messages)).toEqual([
      "assistant a b c",
      "result a: A",
      `result b: ${MISSING_RESULT_TEXT}`,
      "result c: C",
    ]);
  });

  it("moves results before their call behind it [case 17]", () => {
    const { messages } = repair([user("go"), result("a", "R"), calls("", "a")]);
    expect(shape(messages)).toEqual(["user text", "assistant a", "result a: R"]);
  });

  it("distinguishes calls that share an id, and gives each its own result", () => {
    const { messages } = repair([
      calls("", "x"),
      result("x", "1"),
      calls("", "x", "x"),
      result("x", "2"),
      result("x", "3"),
    ]);
    expect(shape(messages)).toEqual([
      "assistant x",
      "result x: 1",
      "assistant x_2 x_3",
      "result x_2: 2",
      "result x_3: 3",
    ]);
  });

  it("never pairs a late duplicate result with a later call of the same id", () => {
    const { messages } = repair([calls("", "x"), result("x", "1"), result("x", "late"), calls("", "x")]);
    expect(shape(messages).at(-1)).toBe(`result x_2: ${MISSING_RESULT_TEXT}`);
  });

  it("drops empty messages, empty texts and reasoning that nothing follows", () => {
    const thought: AssistantPart = {
      type: "reasoning",
      text: "hm",
      providerOptions: { openai: { itemId: "r" } },
    };
    const { messages } = repair([
      { role: "user", content: [] },
      { role: "user", content: [{ type: "text", text: " " }] },
      { role: "assistant", content: [thought] },
      {
        role: "assistant",
        content: [thought, { type: "text", text: "" }, { type: "text", text: "yes" }, thought],
      },
    ]);
    expect(messages).toEqual([{ role: "assistant", content: [thought, { type: "text", text: "yes" }] }]);
  });

  const id = fc.constantFrom("a", "b", "c", "a_2", "call_".padEnd(64, "0"));
  const text = fc.constantFrom("", " ", "t");
  const part: fc.Arbitrary<AssistantPart> = fc.oneof(
    text.map((value) => ({ type: "text" as const, text: value })),
    text.map((value) => ({ type: "reasoning" as const, text: value })),
    fc
      .tuple(id, fc.constantFrom("bash", "glob_files"))
      .map(([toolCallId, toolName]) => ({ type: "tool-call" as const, toolCallId, toolName, input: {} })),
  );
  const message: fc.Arbitrary<Message> = fc.oneof(
    fc.array(text, { maxLength: 2 }).map((texts) => ({
      role: "user" as const,
      content: texts.map((value) => ({ type: "text" as const, text: value })),
    })),
    fc.array(part, { maxLength: 4 }).map((content) => ({ role: "assistant" as const, content })),
    fc.tuple(id, text).map(([toolCallId, value]) => result(toolCallId, value)),
  );

  it("makes every sequence well-formed, changes no input, and is idempotent [case 17]", () => {
    fc.assert(
      fc.property(fc.array(message, { maxLength: 14 }), (messages) => {
        const before = JSON.stringify(messages);
        const once = repair(messages);
        expect(faultOf(once.messages)).toBeUndefined();
        expect(JSON.stringify(messages)).toBe(before);
        expect(repair(once.messages)).toEqual({ messages: once.messages, repairs: [] });
      }),
      { numRuns: 2_000 },
    );
  });

  it("keeps every call with content, and every result whose call is there, exactly once", () => {
    fc.assert(
      fc.property(fc.array(message, { maxLength: 14 }), (messages) => {
        const count = (list: readonly Message[]) =>
          list
            .flatMap((entry) => (entry.role === "assistant" ? entry.content : []))
            .filter((entry) => entry.type === "tool-call").length;
        const { messages: after } = repair(messages);
        expect(count(after)).toBe(count(messages));
        expect(after.filter((entry) => entry.role === "tool")).toHaveLength(count(messages));
      }),
    );
  });
});
