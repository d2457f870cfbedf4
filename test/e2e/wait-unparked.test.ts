/** A long wait gave its sandbox up, and at its end the engine makes no other at once, or what was kept is gone. */
import { expect, it } from "vitest";
import { retryable } from "../../activities/contract/failures.ts";
import { createDockerHost } from "../../activities/sandbox/docker/docker.ts";
import { connectDocker } from "../../activities/sandbox/docker/connect-docker.ts";
import type { SandboxHost } from "../../activities/sandbox/sandbox-host.ts";
import { startAgent } from "../support/agent-harness.ts";
import { perFile } from "../support/per-file.ts";
import { removeBox } from "../support/remove-box.ts";
import { call, scriptedModel } from "../support/scripted-model.ts";
import { noticesOf, resultTexts } from "../support/stored.ts";
import { wakeUpdate } from "../../workflows/messages.ts";

let refusals = 0;
const engine = createDockerHost({ docker: connectDocker(), name: "test" });
const host: SandboxHost = {
  ...engine,
  open: (spec, signal) => {
    if (refusals === 0) return engine.open(spec, signal);
    refusals -= 1;
    return Promise.reject(retryable("SandboxUnavailable", "the engine does not answer"));
  },
};
const agent = perFile(
  () => startAgent({ sandboxHost: host }),
  (agent) => agent.close(),
);

const questions = { mode: "ask" as const, maxOpen: 5, parkAfter: 500 };
const LEAVE =
  "mkdir -p node_modules/pad; echo pad > node_modules/pad/index.js; true npm install pad; echo kept > a.txt";

async function parkedSession(keep: number) {
  const session = await agent.start(
    scriptedModel()
      .answers(call("bash", { command: LEAVE }), call("wait", { reason: "the deploy", seconds: 3_600 }))
      .answers(call("bash", { command: "exec 2>&1; cat a.txt node_modules/pad/index.js" }))
      .says("Done."),
    { config: { questions, sandbox: { network: "none", park: { keep } } } },
  );
  await session.until("sandbox:parked");
  return session;
}

it("tries again until the engine makes one, and goes on with the saved files", async () => {
  const session = await parkedSession(0);
  refusals = 2;
  await session.handle.executeUpdate(wakeUpdate);
  expect(await session.result()).toMatchObject({ result: "Done." });
  expect(refusals).toBe(0);
  expect((await resultTexts(agent.database.store, session.id)).at(-1)).toMatch(/^kept\n/);
});

it("works on with what there is, and tells what is gone, if all that was kept is", async () => {
  const session = await parkedSession(3 * 86_400_000);
  await removeBox(agent.docker, session.id);
  await session.handle.executeUpdate(wakeUpdate);
  expect(await session.result()).toMatchObject({ result: "Done." });
  expect((await resultTexts(agent.database.store, session.id)).at(-1)).toMatch(/^kept\n/);
  expect((await noticesOf(agent.database.store, session.id)).join("\n")).toMatch(
    /files are those of the last save.*npm install pad/,
  );
  await removeBox(agent.docker, session.id);
});
