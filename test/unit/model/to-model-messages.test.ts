import { describe, expect, it } from "vitest";
import type { AssistantPart, Message, ToolOutcome } from "../../../activities/contract/message.ts";
import { toModelMessages } from "../../../activities/model/to-model-messages.ts";

const responses = { model: "openai/o3", api: "responses" } as const;
const chat = { model: "openai/gpt-4o", api: "chat" } as const;

const encrypted = (id: string, model = "openai/o3"): AssistantPart => ({
  type: "reasoning",
  text: "thinking",
  providerOptions: { openai: { itemId: id, reasoningEncryptedContent: "secret" }, longhaul: { model } },
});
const said: AssistantPart = { type: "text", text: "hello" };
const assistant = (...content: AssistantPart[]): Message => ({ role: "assistant", content });
const result = (
  toolCallId: string,
  text: string,
  outcome: ToolOutcome = "completed",
  image = false,
): Message => ({
  role: "tool",
  content: [
    {
      type: "tool-result",
      toolCallId,
      toolName: "bash",
      outcome,
      text,
      ...(image
        ? { files: [{ type: "file", mediaType: "image/png", data: "data:image/png;base64,AAAA" }] }
        : {}),
    },
  ],
});

describe("messages for the AI SDK", () => {
  it("gathers the results of one turn into one message", () => {
    const sent = toModelMessages([result("a", "1"), result("b", "2")], chat);
    expect(sent).toHaveLength(1);
    expect(sent[0]?.content).toHaveLength(2);
  });

  it("says the outcome in the result's text", () => {
    const texts = (["completed", "error", "interrupted", "unknown"] as const).map((outcome) => {
      const [message] = toModelMessages([result("a", "what it printed", outcome)], responses);
      return JSON.stringify(message?.content);
    });
    expect(texts[0]).toContain('"value":"what it printed"');
    expect(texts[1]).toContain('"value":"Error: what it printed"');
    expect(texts[2]).toContain('"value":"what it printed [interrupted]"');
    expect(texts[3]).toContain('"value":"Outcome unknown: what it printed"');
  });

  it("never sends an empty result", () => {
    expect(JSON.stringify(toModelMessages([result("a", "")], chat))).toContain("(no output)");
  });

  it("puts a result's image into the result on the Responses wire", () => {
    const [message] = toModelMessages([result("a", "see", "completed", true)], responses);
    expect(message?.content).toMatchObject([
      {
        output: {
          type: "content",
          value: [
            { type: "text", text: "see" },
            { type: "file", data: { type: "data", data: "AAAA" } },
          ],
        },
      },
    ]);
  });

  it("puts images after all sibling results on the chat wire, which has no place for them in a result", () => {
    const sent = toModelMessages([result("a", "see", "completed", true), result("b", "2")], chat);
    expect(sent.map(({ role }) => role)).toEqual(["tool", "user"]);
    expect(sent[1]?.content).toMatchObject([{ type: "text" }, { type: "file", mediaType: "image/png" }]);
  });

  it("sends reasoning back to the model that thought it, with what it led to", () => {
    const [message] = toModelMessages([assistant(encrypted("rs_1"), said)], responses);
    expect(message?.content).toMatchObject([
      { type: "reasoning", providerOptions: { openai: { itemId: "rs_1" } } },
      said,
    ]);
  });

  it.each([
    ["on the chat wire", [encrypted("rs_1"), said], chat],
    ["thought by another model", [encrypted("rs_1", "openai/o4-mini"), said], responses],
    ["with nothing after it", [said, encrypted("rs_1")], responses],
    [
      "without encrypted content",
      [{ type: "reasoning", text: "x", providerOptions: { openai: { itemId: "rs_1" } } } as const, said],
      responses,
    ],
  ])("leaves out reasoning %s", (_, parts, target) => {
    const [message] = toModelMessages([assistant(...parts)], target);
    expect(message?.content).toEqual([said]);
  });

  it("keeps all summaries of one reasoning item when the last carries the encrypted content", () => {
    const first: AssistantPart = {
      type: "reasoning",
      text: "one",
      providerOptions: { openai: { itemId: "rs_1" } },
    };
    const [message] = toModelMessages([assistant(first, encrypted("rs_1"), said)], responses);
    expect(message?.content).toHaveLength(3);
  });

  it("leaves out an assistant message that has nothing to send", () => {
    expect(toModelMessages([assistant(encrypted("rs_1"))], responses)).toEqual([]);
  });

  it("sends names and arguments that no provider refuses [R35] [R36]", () => {
    const bad: AssistantPart = {
      type: "tool-call",
      toolCallId: "a",
      toolName: "bash<|channel|>x",
      input: '{"command": "l',
    };
    const [message] = toModelMessages([assistant(bad)], chat);
    expect(message?.content).toMatchObject([
      { toolName: "bash__channel__x", input: { invalid_arguments: '{"command": "l' } },
    ]);
  });
});
