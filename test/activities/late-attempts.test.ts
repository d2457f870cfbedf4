/** An attempt whose worker was stopped past its heartbeat continues when another attempt has its work, or has ended it. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { claimCall, findCall, finishCall } from "../../activities/store/tool-calls.ts";
import { startDirectAgent } from "../support/direct-agent.ts";
import { answersOf, resultTexts } from "../support/stored.ts";
import { eventually } from "../support/eventually.ts";
import { call, scriptedModel, text } from "../support/scripted-model.ts";
import { useDatabase } from "../support/test-database.ts";
import { untilTaken } from "../support/waits.ts";

const database = useDatabase(5);

it(
  "an attempt that continues after its session's end makes no sandbox; the next run does",
  { tags: ["R20"] },
  async () => {
    const agent = await startDirectAgent(database, scriptedModel().says("Done."));
    await agent.step(1);
    await agent.perform("closeSandbox", { step: 1 });
    await agent.perform("closeSession", { step: 1, status: "completed" });
    await expect(agent.perform("openSandbox", { step: 1 })).rejects.toMatchObject({ type: "Superseded" });
    expect(await agent.events()).not.toContain("sandbox:created");
    agent.runId = "run-2";
    await agent.perform("openSandbox", { step: 2 });
    expect(await agent.events()).toContain("sandbox:created");
  },
);

it("a call that another attempt has claimed is ended by that one alone", { tags: ["R20"] }, async () => {
  const command = "echo line >> n.txt; until [ -e go ]; do sleep 0.05; done; echo done";
  const agent = await startDirectAgent(database, scriptedModel().calls("bash", { command }).says("Done."));
  await agent.perform("modelStep", { step: 1 });
  const claimed = (fence: number) => untilTaken(database.store, agent.id, fence);
  const at = { step: 1, index: 0 };
  const late = agent.perform("runTool", at, { attempt: 1 }).catch((error: unknown) => error);
  await claimed(1);
  await eventually("the command runs", () => agent.sandbox.started.length === 1);
  const second = agent.perform("runTool", at, { attempt: 2 });
  await claimed(2);
  writeFileSync(join(agent.sandbox.root, "go"), "");
  expect(await second).toMatchObject({ outcome: "completed" });
  // Temporal does not listen to it any more; it says what is stored, or that another attempt is still at it.
  const { outcome, type } = (await late) as { outcome?: string; type?: string };
  expect(outcome ?? type).toMatch(/^(completed|CallTaken)$/);
  expect(agent.sandbox.started.filter(({ id }) => id === "s1c0")).toHaveLength(1);
  expect(await resultTexts(database.store, agent.id)).toEqual(["done"]);
  expect((await agent.events()).filter((type) => type === "llm:tool-result")).toHaveLength(1);
});

it("two attempts of a read-only call both return the result that the first of them stored", async () => {
  const calls = Array.from({ length: 5 }, () => call("list_directory", { path: "." }));
  const agent = await startDirectAgent(
    database,
    scriptedModel()
      .answers(...calls)
      .says("Done."),
  );
  await agent.perform("modelStep", { step: 1 });
  const attempts = calls.flatMap((_, index) =>
    [1, 2].map((attempt) => agent.perform("runTool", { step: 1, index }, { attempt })),
  );
  const facts = await Promise.all(attempts);
  for (const index of calls.keys()) {
    const [first, second] = facts.slice(2 * index, 2 * index + 2);
    expect(first).toMatchObject({ outcome: "completed", hash: second?.hash, tokens: second?.tokens });
  }
  expect(await resultTexts(database.store, agent.id)).toHaveLength(calls.length);
  expect((await agent.events()).filter((type) => type === "llm:tool-result")).toHaveLength(calls.length);
});

it("a call that an earlier attempt claimed late and ended is returned as it ended", async () => {
  const command = "echo line >> n.txt; until [ -e go ]; do sleep 0.05; done; echo done";
  const agent = await startDirectAgent(database, scriptedModel().calls("bash", { command }).says("Done."));
  await agent.perform("modelStep", { step: 1 });
  const at = { step: 1, index: 0 };
  const current = agent.perform("runTool", at, { attempt: 2 });
  await untilTaken(database.store, agent.id, 1);
  const { db } = database.store;
  const found = await findCall(db, agent.id, 1, 0);
  const row = await claimCall(db, found!, () => false);
  await finishCall(db, row!.before, row!.fence, { outcome: "error", exitCode: 1, truncated: false });
  writeFileSync(join(agent.sandbox.root, "go"), "");
  expect(await current).toMatchObject({ outcome: "error" });
});

it(
  "a late answer to a step that has one is dropped, and the first is announced once",
  { tags: ["R20"] },
  async () => {
    const late = Promise.withResolvers<void>();
    const script = scriptedModel()
      .replies(async () => {
        await late.promise;
        return { parts: [text("The late answer.")] };
      })
      .says("The answer that counts.");
    const agent = await startDirectAgent(database, script);
    const first = agent.perform("modelStep", { step: 1 }, { attempt: 1 });
    await eventually("the model is asked", () => agent.model.log.length === 1);
    await agent.perform("modelStep", { step: 1 }, { attempt: 2 });
    late.resolve();
    await expect(first).rejects.toThrow("Nothing of this attempt was kept");
    const answers = await answersOf(database.store, agent.id);
    expect(JSON.stringify(answers.map((row) => row.content))).toContain("The answer that counts.");
    expect(answers).toHaveLength(1);
    expect((await agent.events()).filter((type) => type === "llm:response")).toHaveLength(1);
  },
);
