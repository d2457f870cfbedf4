import { expect, it } from "vitest";
import type { Message } from "../../activities/contract/message.ts";
import { toolSpecs } from "../../activities/tools/index.ts";
import { createAiSdkModel } from "../../activities/model/ai-sdk.ts";
import { findProvider } from "../../activities/config/providers.ts";
import { FLASHCARDS } from "../../examples/rehearsal/flashcards/last-steps.ts";
import { createRehearsal } from "../../examples/rehearsal/rehearsal.ts";
import { serveRehearsal } from "../../examples/rehearsal/server.ts";
import { assistant, modelRequest, toolResult, user } from "../support/model-request.ts";

it("the rehearsal's server streams the script to our model adapter, and counts its tokens", async () => {
  const served = await serveRehearsal(createRehearsal({ script: FLASHCARDS, delayMs: 0 }));
  try {
    const environment = { LONGHAUL_REHEARSAL_URL: served.url };
    const model = createAiSdkModel({ environment, mask: (text) => text });
    const found = findProvider("rehearsal/flashcards", {}, environment);
    const deltas: string[] = [];
    const ask = (messages: readonly Message[]) =>
      model.ask(
        modelRequest({ ...found, model: "rehearsal/flashcards", messages, tools: toolSpecs() }),
        (delta) => deltas.push("text" in delta ? delta.text : ""),
        new AbortController().signal,
      );
    const task = user("Build a flashcard application.");
    const first = await ask([task]);
    expect(first.content.map(({ type }) => type)).toEqual(["reasoning", "text", "tool-call", "tool-call"]);
    expect(deltas.join("")).toContain("No model is configured");
    expect(first.usage?.input).toBeGreaterThan(500);
    expect(first.usage?.reasoning).toBeGreaterThan(10);
    expect(first.usage?.cached).toBe(0);

    const results = first.content.flatMap((part) =>
      part.type === "tool-call" ? [toolResult(part.toolCallId, "done")] : [],
    );
    const second = await ask([task, assistant(...first.content), ...results]);
    expect(JSON.stringify(second.content)).toContain("Which tools does this sandbox have?");
    expect(second.usage?.cached).toBeGreaterThan(1_000);
  } finally {
    await served.close();
  }
});
