/** What of a provider's stream is an answer, on each wire: thoughts in its text, words for its end, refusals, calls as text. */
import { describe, expect, it } from "vitest";
import { apis, askOne, streamOf, textEvents } from "../support/wire-answers.ts";

describe.each(apis)("on the %s wire", (api) => {
  it.each([
    ["with both tags", "<think>\nHm.\n</think>\n\nDone."],
    ["without the opening one", "Hm.\n</think>\n\nDone."],
  ])("thoughts in the text are no part of the answer, %s", async (_, text) => {
    const { answer, deltas } = await askOne(api, streamOf(textEvents[api](text)));
    expect(answer.content.map((part) => [part.type, "text" in part && part.text])).toEqual([
      ["reasoning", "Hm."],
      ["text", "Done."],
    ]);
    expect(answer.finish).toBe("stop");
    const shown = deltas.flatMap((delta) => (delta.type === "text" ? [delta.text] : [])).join("");
    expect(shown.trim()).toBe(text.startsWith("<") ? "Done." : text);
  });

  it.each(["DONE", "eos", "Complete", "banana"])("the word %s ends an answer", async (word) => {
    if (api === "responses") return;
    const { answer } = await askOne(api, streamOf(textEvents[api]("Done.", word)));
    expect(answer).toMatchObject({ finish: "stop", reason: word });
  });

  it.each([
    ["max_new_tokens", "length"],
    ["upstream_error", "error"],
    ["Content_Filtered", "content-filter"],
  ])("the word %s means %s", async (word, finish) => {
    if (api === "responses") return;
    expect((await askOne(api, streamOf(textEvents[api]("Half", word)))).answer.finish).toBe(finish);
  });

  it("an answer of nothing that a filter ended is a refused request", async () => {
    if (api === "responses") return;
    const word = { chat: "content_filter", messages: "refusal", gemini: "SAFETY" }[api];
    const asking = askOne(api, streamOf(textEvents[api]("", word)));
    await expect(asking).rejects.toMatchObject({ name: "ModelError", class: "rejected" });
  });

  it("a text that is a call is read as one only where that is asked for", async () => {
    const text = '```json\n{"name": "bash", "arguments": {"command": "ls"}}\n```';
    const body = streamOf(textEvents[api](text));
    expect((await askOne(api, body)).answer.content).toMatchObject([{ type: "text", text }]);
    const { answer } = await askOne(api, body, { options: { callsInText: true } });
    expect(answer).toMatchObject({
      content: [{ type: "tool-call", toolName: "bash", input: { command: "ls" } }],
      finish: "tool-calls",
    });
  });
});

describe("Google's reasons", () => {
  it("a call that it could not read is an empty answer with its message", async () => {
    const candidate = {
      content: { role: "model", parts: [] },
      finishReason: "MALFORMED_FUNCTION_CALL",
      finishMessage: "Malformed function call: print(bash(",
    };
    const { answer } = await askOne("gemini", streamOf([{ candidates: [candidate] }]));
    expect(answer).toMatchObject({
      content: [],
      finish: "error",
      reason: "MALFORMED_FUNCTION_CALL: Malformed function call: print(bash(",
    });
  });

  it("a blocked prompt is a refused request with the reason", async () => {
    const blocked = {
      promptFeedback: { blockReason: "PROHIBITED_CONTENT" },
      usageMetadata: { promptTokenCount: 9 },
    };
    const error = await askOne("gemini", streamOf([blocked])).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({
      class: "rejected",
      message: expect.stringContaining("PROHIBITED_CONTENT"),
    });
  });
});
