import { randomUUID } from "node:crypto";
import Dockerode from "dockerode";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { estimateText } from "../../activities/transcript/tokens.ts";
import { createDockerHost } from "../../activities/sandbox/docker/docker.ts";
import { createModelServer } from "../../worker/rehearsal/model-server/create-model-server.ts";
import type { ModelServer } from "../../worker/rehearsal/model-server/wire.ts";
import { FLASHCARDS } from "../../worker/rehearsal/flashcards/script.ts";
import { createRehearsal } from "../../worker/rehearsal/rehearsal.ts";
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
      const status = steps.flatMap((step) => step.calls).at(-1);
      expect(status?.text).toMatch(/Add the README/);
      expect(steps.at(-1)?.text).toMatch(/This was the \*\*rehearsal model\*\*/);
    },
  );
});
