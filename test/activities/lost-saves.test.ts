/** A save in parallel with the next step that ends its worker: no activity tells of it, so it is counted before it begins. */
import { expect, it } from "vitest";
import { endSaves } from "../../activities/workspace/counted-save.ts";
import { findSandbox } from "../../activities/store/sandboxes.ts";
import type { DirectAgent } from "../support/direct-agent.ts";
import { bash, close, newEngine, otherWorker, resume, saved, startOn } from "../support/engine-session.ts";
import { eventually } from "../support/eventually.ts";
import { scriptedModel } from "../support/scripted-model.ts";
import { useDatabase } from "../support/test-database.ts";

const database = useDatabase(10);

const savesBegun = async ({ id }: DirectAgent) => (await findSandbox(database.store.db, id))?.savesBegun;

const untilBegun = (agent: DirectAgent, count: number) =>
  eventually(`${count} saves begun and not ended`, async () => (await savesBegun(agent)) === count);

const writing = (text: string) => bash(`echo ${text} >> log.txt`);

it("after three workers that were lost while they saved, a fourth neither opens nor saves; what a person says continues it", async () => {
  const engine = newEngine();
  const script = scriptedModel().answers(writing("1")).answers(writing("2")).answers(writing("3"));
  const agent = await startOn(database, script.answers(writing("4")).answers(writing("5")), engine);
  await agent.perform("openSession", { chain: agent.runId });
  // A worker that is lost never finishes its save.
  engine.beforeProgram = () => new Promise(() => undefined);
  await agent.step(1);
  await untilBegun(agent, 1);
  for (const step of [2, 3]) {
    const next = otherWorker(agent);
    await next.perform("modelStep", { step, guidance: [] });
    await next.perform("runTool", { step, index: 0 });
    await untilBegun(agent, step);
  }

  const fourth = otherWorker(agent);
  await fourth.perform("modelStep", { step: 4, guidance: [] });
  const refused = { type: "PoisonedSession", nonRetryable: true };
  await expect(fourth.perform("runTool", { step: 4, index: 0 })).rejects.toMatchObject({
    ...refused,
    message: expect.stringMatching(
      /3 workers in a row were lost.*as last saved.*send a message to continue/s,
    ),
  });
  await expect(fourth.perform("closeSandbox", { step: 4 })).rejects.toMatchObject(refused);
  expect(await savesBegun(agent)).toBe(3);
  expect(engine.fake(agent.id)).toBeDefined();
  await fourth.perform("closeSession", { step: 4, status: "failed" });

  engine.beforeProgram = async () => {};
  const step = await resume(agent, "run-2");
  expect(await savesBegun(agent)).toBe(0);
  const fifth = otherWorker(agent);
  await fifth.perform("modelStep", { step, guidance: [] });
  await fifth.perform("runTool", { step, index: 0 });
  await close(agent, step, fifth);
  expect(await saved(agent)).toEqual({ "log.txt": "1\n2\n3\n5\n" });
});

it("a worker that ends in order in the middle of a save is not lost: after two of them in a row saving continues", async () => {
  const engine = newEngine();
  const script = scriptedModel().answers(writing("1")).answers(writing("2")).answers(writing("3"));
  const agent = await startOn(database, script, engine);
  await agent.perform("openSession", { chain: agent.runId });
  engine.beforeProgram = () => new Promise(() => undefined);
  let worker: ReturnType<typeof otherWorker> = agent;
  for (const step of [1, 2]) {
    await worker.perform("modelStep", { step, guidance: [] });
    await worker.perform("runTool", { step, index: 0 });
    await untilBegun(agent, 1);
    await endSaves(database.store.db, 10);
    expect(await savesBegun(agent)).toBe(0);
    worker = otherWorker(agent);
  }
  engine.beforeProgram = async () => {};
  await worker.perform("modelStep", { step: 3, guidance: [] });
  await worker.perform("runTool", { step: 3, index: 0 });
  await close(agent, 3, worker);
  expect(await saved(agent)).toEqual({ "log.txt": "1\n2\n3\n" });
});

it("saves that fail, or find nothing to save, do not count", async () => {
  const engine = newEngine();
  const script = [1, 2, 3].reduce((all) => all.answers(bash("true")), scriptedModel());
  const agent = await startOn(database, script.answers(writing("saved")), engine);
  let failures = 0;
  engine.beforeProgram = () => {
    failures += 1;
    return Promise.reject(new Error("The disk is gone."));
  };
  for (const step of [1, 2, 3]) {
    await agent.step(step);
    await eventually("the save has failed", () => failures === step);
    await untilBegun(agent, 0);
  }
  engine.beforeProgram = async () => {};
  await agent.step(4);
  await close(agent, 4);
  expect(await saved(agent)).toEqual({ "log.txt": "saved\n" });
  expect(await savesBegun(agent)).toBe(0);
});
