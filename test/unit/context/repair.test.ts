import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { AssistantPart, Message } from "../../../activities/contract/message.ts";
import { findFault, MISSING_RESULT_TEXT, repair } from "../../../activities/transcript/view.ts";
import { calls, result, says, user } from "../../support/rows.ts";

const shape = (messages: readonly Message[]) =>
  messages.map((message) => {
    if (message.role === "tool") return `result ${message.content[0].toolCallId}: ${message.content[0].text}`;
    return `${message.role} ${message.content
      .map((part) => (part.type === "tool-call" ? part.toolCallId : part.type))
      .join(" ")}`;
  });

describe("repair", () => {
  it("returns a sound sequence unchanged", { tags: ["case-17"] }, () => {
    const sound = [user("go"), calls("", "a", "b"), result("a"), result("b"), says("done")];
    expect(repair(sound)).toEqual({ messages: sound, repairs: [] });
    expect(repair(sound).messages).toBe(sound);
  });

  const go = user("go");
  const missing = (id: string) => `result ${id}: ${MISSING_RESULT_TEXT}`;
  const [ghost, first, again] = [result("ghost"), result("a", "R"), result("a", "again")];

  it.each<[string, Message[], string[], string[]?]>([
    [
      "gives a call without a result an interrupted one under the call's own id",
      [go, calls("", "a"), user("and?")],
      ["user text", "assistant a", missing("a"), "user text"],
      ["missing-result a"],
    ],
    ["drops a result without a call", [go, ghost], ["user text"], ["orphan-result ghost"]],
    [
      "moves a user message between a call and its result behind them",
      [go, calls("", "a"), user("wait"), first],
      ["user text", "assistant a", "result a: R", "user text"],
    ],
    [
      "moves an assistant message between a call and its result behind them",
      [calls("", "a"), says("hm"), first],
      ["assistant a", "result a: R", "assistant text"],
      ["moved-result a"],
    ],
    [
      "keeps the first of two results with one id",
      [calls("", "a"), first, again],
      ["assistant a", "result a: R"],
      ["duplicate-result a"],
    ],
    [
      "treats a result with a wrong id as an orphan and its call as unanswered",
      [calls("", "a"), ghost],
      ["assistant a", missing("a")],
      ["missing-result a", "orphan-result ghost"],
    ],
    [
      "fills in one of three results and keeps call order",
      [calls("", "a", "b", "c"), result("c", "C"), first],
      ["assistant a b c", "result a: R", missing("b"), "result c: C"],
    ],
    [
      "moves results before their call behind it",
      [go, first, calls("", "a")],
      ["user text", "assistant a", "result a: R"],
    ],
    [
      "distinguishes calls that share an id, and gives each its own result",
      [calls("", "a"), first, calls("", "a", "a"), result("a", "2"), result("a", "3")],
      ["assistant a", "result a: R", "assistant a_2 a_3", "result a_2: 2", "result a_3: 3"],
    ],
    [
      "never pairs a late duplicate result with a later call of the same id",
      [calls("", "a"), first, again, calls("", "a")],
      ["assistant a", "result a: R", "assistant a_2", missing("a_2")],
    ],
  ])("%s", { tags: ["case-17"] }, (_, messages, expected, kinds) => {
    const repaired = repair(messages);
    expect(shape(repaired.messages)).toEqual(expected);
    const found = repaired.repairs.map(({ kind, toolCallId }) => `${kind} ${toolCallId}`);
    if (kinds !== undefined) expect(found.toSorted()).toEqual(kinds);
  });

  it("marks a result that it fills in as interrupted", { tags: ["case-17"] }, () => {
    const filled = { outcome: "interrupted", toolName: "bash" };
    expect(repair([calls("", "a")]).messages[1]).toMatchObject({ content: [filled] });
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

  it("makes every sequence well-formed, changes no input, and is idempotent", { tags: ["case-17"] }, () => {
    fc.assert(
      fc.property(fc.array(message, { maxLength: 14 }), (messages) => {
        const before = JSON.stringify(messages);
        const once = repair(messages);
        expect(findFault(once.messages)).toBeUndefined();
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
