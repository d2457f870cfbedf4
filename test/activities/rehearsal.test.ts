import { randomUUID } from "node:crypto";
import Dockerode from "dockerode";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import type { Message } from "../../activities/contract/message.ts";
import { toolSpecs } from "../../activities/tools/index.ts";
import { estimateText } from "../../activities/contract/tokens.ts";
import { createAiSdkModel } from "../../activities/model/ai-sdk.ts";
import { createDockerHost } from "../../activities/sandbox/docker/docker.ts";
import { createModelServer } from "../support/model-server/create-model-server.ts";
import type { ModelServer } from "../support/model-server/wire.ts";
import { FLASHCARDS } from "../../worker/rehearsal/flashcards/script.ts";
import { createRehearsal } from "../../worker/rehearsal/rehearsal.ts";
import { serveRehearsal } from "../../worker/rehearsal/server.ts";
import { assistant, modelRequest, toolResult, user } from "../support/model-request.ts";
import { playRehearsal } from "../support/play-rehearsal.ts";

const dockerHost = inject("dockerHost");
const docker =
  dockerHost === "" ? new Dockerode() : new Dockerode({ socketPath: dockerHost.replace("unix://", "") });
const host = createDockerHost({ docker, name: "rehearsal-test" });
const sessionId = `rehearsal-${randomUUID()}`;
let server: ModelServer;

beforeAll(async () => {
  server = await createModelServer({
    models: { flashcards: { window: 16_000, maxOutput: 2_000, reasoning: true } },
    apiKey: null,
    countTokens: estimateText,
    reply: createRehearsal({ script: FLASHCARDS, delayMs: 0 }),
  });
});
afterAll(async () => {
  await server.close();
  await host.remove(sessionId);
  await host.close();
});

describe("the rehearsal in the sandbox", () => {
  it(
    "[A5] builds the flashcard application in more than 60 steps, and its tests pass",
    { timeout: 180_000 },
    async () => {
      const sandbox = await host.open({
        sessionId,
        image: inject("sandboxImage"),
        network: "none",
        memoryBytes: 1024 ** 3,
        cpus: 2,
        pids: 256,
      });
      const steps = await playRehearsal(server.url, sandbox, "Build a flashcard application.");

      expect(steps.length).toBeGreaterThan(60);
      // Each step was asked for once, in order, and what went wrong was meant to.
      expect(steps.flatMap((step) => step.text.match(/not what the script expects.*/) ?? [])).toEqual([]);
      expect(server.log.filter((request) => request.status !== 200)).toEqual([]);
      const run = steps.flatMap((step) => step.calls).findLast((call) => call.text.includes(" pass "));
      expect(run?.text).toMatch(/pass 63\nℹ fail 0\n/);
      expect(run?.text).toContain("exit 0");
      // Without a network it says what it leaves out.
      const looks = steps
        .flatMap((step) => step.calls)
        .filter((call) => call.text.includes("registry answers"));
      expect(looks).toHaveLength(2);
      const status = steps.flatMap((step) => step.calls).at(-1);
      expect(status?.text).toMatch(/Add the README/);
      expect(steps.at(-1)?.text).toMatch(/This was the \*\*rehearsal model\*\*/);
    },
  );
});

describe("the rehearsal's own server", () => {
  it("streams the script's steps to our model adapter, and counts tokens, reasoning and cache", async () => {
    const served = await serveRehearsal(createRehearsal({ script: FLASHCARDS, delayMs: 0 }));
    try {
      const model = createAiSdkModel({
        environment: { LONGHAUL_REHEARSAL_URL: served.url },
        mask: (text) => text,
      });
      const deltas: string[] = [];
      const ask = (messages: readonly Message[]) =>
        model.ask(
          modelRequest({ model: "rehearsal/flashcards", messages, tools: toolSpecs() }),
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
});
