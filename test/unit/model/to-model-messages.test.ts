import { describe, expect, it } from "vitest";
import type { AssistantPart, Message, ToolOutcome } from "../../../activities/contract/message.ts";
import { toModelMessages } from "../../../activities/model/request/to-model-messages.ts";
import { askedAs } from "../../support/run-config.ts";

const responses = { ...askedAs("openai/o3"), api: "responses" } as const;
const chat = { ...askedAs("openai/gpt-4o"), api: "chat" } as const;

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
      files: image
        ? [{ type: "file", mediaType: "image/png", data: "data:image/png;base64,AAAA" }]
        : undefined,
    },
  ],
});

describe("messages for the AI SDK", () => {
  it("gathers the results of one turn into one message", () => {
    const sent = toModelMessages([result("a", "1"), result("b", "2")], chat);
    expect(sent).toHaveLength(1);
    expect(sent[0]?.content).toHaveLength(2);
  });

  it("state the outcome in the result's text", () => {
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
    for (const text of ["", " \n"])
      expect(JSON.stringify(toModelMessages([result("a", text)], chat))).toContain("(no output)");
  });

  it("sends no text of blanks, which Anthropic refuses", () => {
    const blank = { type: "text", text: "\n\n" } as const;
    const call = { type: "tool-call", toolCallId: "a", toolName: "bash", input: {} } as const;
    const history: Message[] = [
      { role: "user", content: [blank, { type: "text", text: "Look." }] },
      assistant(blank, call),
      result("a", "x"),
      { role: "user", content: [blank] },
    ];
    const texts = [...JSON.stringify(toModelMessages(history, chat)).matchAll(/"text":"([^"]*)"/g)];
    expect(texts.map(([, text]) => text)).toEqual(["Look.", "(empty)"]);
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

  it("put images after all sibling results on the chat wire, whose results have no images", () => {
    const sent = toModelMessages([result("a", "see", "completed", true), result("b", "2")], chat);
    expect(sent.map(({ role }) => role)).toEqual(["tool", "user"]);
    expect(sent[1]?.content).toMatchObject([{ type: "text" }, { type: "file", mediaType: "image/png" }]);
  });

  it("return reasoning to the model that produced it, with what followed it", () => {
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
      providerOptions: { openai: { itemId: "rs_1" }, longhaul: { model: "openai/o3" } },
    };
    const [message] = toModelMessages([assistant(first, encrypted("rs_1"), said)], responses);
    expect(message?.content).toHaveLength(3);
  });

  it("leave out an assistant message without content", () => {
    expect(toModelMessages([assistant(encrypted("rs_1"))], responses)).toEqual([]);
  });

  it("contain only names and arguments that every provider accepts", { tags: ["R35", "R36"] }, () => {
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

  it.each(["constructor", "__proto__", "toString", ""])("do not contain the tool name %j", (toolName) => {
    const call: AssistantPart = { type: "tool-call", toolCallId: "a", toolName, input: {} };
    const result = { type: "tool-result", toolCallId: "a", toolName, outcome: "error", text: "no" } as const;
    const messages = toModelMessages([assistant(call), { role: "tool", content: [result] }], responses);
    expect(messages.map(({ content }) => content)).toMatchObject([
      [{ toolName: "unknown" }],
      [{ toolName: "unknown" }],
    ]);
  });
});

describe("a server's message format", () => {
  const mistral = {
    model: "mistral/devstral",
    modelName: "devstral",
    api: "chat",
    provider: {
      name: "mistral",
      options: { callIds: "nine", userAfterResults: false, sendReasoning: "none" },
    },
  } as const;
  const called = (toolCallId: string, more: object = {}): AssistantPart => ({
    type: "tool-call",
    toolCallId,
    toolName: "bash",
    input: {},
    ...more,
  });
  const asked: Message = { role: "user", content: [{ type: "text", text: "Go." }] };

  it("ends with the user if the assistant was last, and joins the assistant's texts in two rows", () => {
    const half: AssistantPart = { type: "text", text: "Half [interrupted]" };
    const sent = toModelMessages([asked, assistant(said), assistant(half)], responses);
    expect(sent.map(({ role }) => role)).toEqual(["user", "assistant", "user"]);
    expect(sent[1]?.content).toEqual([said, half]);
    expect(toModelMessages([asked, result("a", "1")], responses)).toHaveLength(2);
  });

  it("has call ids of nine letters and digits, the same in call and result, and unique", () => {
    const ids = ["call_abc", "call_abd", "AbCdEf123"];
    const history = [asked, assistant(...ids.map((id) => called(id))), ...ids.map((id) => result(id, "x"))];
    const idsIn = (list: readonly unknown[]) => JSON.stringify(list).match(/"toolCallId":"[^"]*"/g) ?? [];
    const found = idsIn(toModelMessages(history, mistral));
    expect(found.slice(0, 3)).toEqual(found.slice(3));
    expect(new Set(found).size).toBe(3);
    for (const id of found) expect(id).toMatch(/:"[a-zA-Z0-9]{9}"$/);
    expect(found[2]).toContain("AbCdEf123");
    expect(idsIn(toModelMessages([...history, asked], mistral)).slice(0, 6)).toEqual(found);
  });

  it("has safe call ids that do not collide", () => {
    const sent = toModelMessages(
      [asked, assistant(called("a.b"), called("a:b")), result("a.b", "1"), result("a:b", "2")],
      { ...askedAs("anthropic/claude-sonnet-5"), api: "messages" },
    );
    const [one, two] = (sent[1]?.content ?? []) as { toolCallId: string }[];
    expect(one?.toolCallId).toBe("a_b");
    expect(two?.toolCallId).toMatch(/^[a-zA-Z0-9_-]+$/);
    expect(two?.toolCallId).not.toBe("a_b");
    expect(sent[2]?.content).toMatchObject([{ toolCallId: "a_b" }, { toolCallId: two?.toolCallId }]);
  });

  it("inserts an assistant message between results and the user if the server requires it", () => {
    const sent = toModelMessages([asked, assistant(called("a")), result("a", "1"), asked], mistral);
    expect(sent.map(({ role }) => role)).toEqual(["user", "assistant", "tool", "assistant", "user"]);
  });

  it("returns a signed thought to the Claude model that produced it, and to no other", () => {
    const signed: AssistantPart = {
      type: "reasoning",
      text: "hm",
      providerOptions: { anthropic: { signature: "s" }, longhaul: { model: "anthropic/a" } },
    };
    const to = (model: string) =>
      toModelMessages([asked, assistant(signed, called("x")), result("x", "1")], {
        ...askedAs(model),
        api: "messages",
      })[1]?.content;
    expect(to("anthropic/a")).toHaveLength(2);
    expect(to("anthropic/b")).toHaveLength(1);
  });

  it("marks the last two turns for Anthropic's cache, for the configured time", () => {
    const history = [asked, assistant(called("a")), result("a", "1"), assistant(said), asked];
    const marks = (cache?: "1h" | false) =>
      toModelMessages(history, {
        ...askedAs("anthropic/a"),
        api: "messages",
        cache,
      }).map(({ providerOptions }) => providerOptions?.["anthropic"]?.["cacheControl"]);
    const mark = { type: "ephemeral" };
    expect(marks()).toEqual([undefined, undefined, mark, undefined, mark]);
    expect(marks("1h").at(-1)).toEqual({ type: "ephemeral", ttl: "1h" });
    expect(marks(false).filter(Boolean)).toEqual([]);
  });

  it("substitutes the signature of another model's call, if Gemini requires one", () => {
    const gemini = { ...askedAs("gemini/gemini-3-pro"), api: "chat" } as const;
    const own = called("b", {
      providerOptions: { compatible: { thoughtSignature: "mine" }, longhaul: { model: gemini.model } },
    });
    const sent = toModelMessages(
      [asked, assistant(called("a")), result("a", "1"), assistant(own), result("b", "2")],
      gemini,
    );
    const signatures = JSON.stringify(sent).match(/"thoughtSignature":"[^"]*"/g);
    expect(signatures).toEqual([
      '"thoughtSignature":"skip_thought_signature_validator"',
      '"thoughtSignature":"mine"',
    ]);
  });

  it("has thoughts with calls for Kimi and DeepSeek, also with another model's", () => {
    const [, sent] = toModelMessages([asked, assistant(called("a")), result("a", "1")], {
      ...askedAs("kimi/kimi-k3"),
      api: "chat",
    });
    expect(sent?.providerOptions).toEqual({ openaiCompatible: { reasoning_content: " " } });
  });
});
