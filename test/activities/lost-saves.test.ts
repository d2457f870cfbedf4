/** Saves in parallel with the next step that end their worker, which no activity reports: they are counted before they begin; and one that fails. */
import { MockActivityEnvironment } from "@temporalio/testing";
import { DefaultLogger, type LogEntry } from "@temporalio/worker";
import { expect, it } from "vitest";
import { findSandbox } from "../../activities/store/sandboxes.ts";
import { Suspects } from "../../activities/runtime/lost-attempts.ts";
import { CountedSaves } from "../../activities/runtime/counted-saves.ts";
import { type DirectAgent, startDirectAgent } from "../support/direct-agent.ts";
import { bash, close, newEngine, otherWorker, resume, saved, startOn } from "../support/engine-session.ts";
import { eventually } from "../support/eventually.ts";
import { scriptedModel } from "../support/scripted-model.ts";
import { useDatabase } from "../support/test-database.ts";

const database = useDatabase(10);

const savesBegun = async ({ id }: DirectAgent) => (await findSandbox(database.store.db, id))?.savesBegun;

const untilBegun = (agent: DirectAgent, count: number) =>
  eventually(`${count} saves begun and not ended`, async () => (await savesBegun(agent)) === count);

/** A step and its call, by this worker. */
async function take(worker: ReturnType<typeof otherWorker>, step: number): Promise<void> {
  await worker.perform("modelStep", { step });
  await worker.perform("runTool", { step, index: 0 });
}

const writing = (text: string) => bash(`echo ${text} >> log.txt`);

it("after five workers lost in a save, a sixth does not save; a person's message continues it", async () => {
  const engine = newEngine();
  const script = ["1", "2", "3", "4", "5", "6", "7"].reduce(
    (all, text) => all.answers(writing(text)),
    scriptedModel(),
  );
  const agent = await startOn(database, script, engine);
  await agent.perform("openSession", { chain: agent.runId });
  // A worker that is lost never finishes its save.
  engine.beforeProgram = () => new Promise(() => undefined);
  await agent.step(1);
  await untilBegun(agent, 1);
  for (const step of [2, 3, 4, 5]) {
    await take(otherWorker(agent), step);
    await untilBegun(agent, step);
  }

  const sixth = otherWorker(agent);
  await sixth.perform("modelStep", { step: 6 });
  const refused = { type: "PoisonedSession", nonRetryable: true };
  await expect(sixth.perform("runTool", { step: 6, index: 0 })).rejects.toMatchObject({
    ...refused,
    message: expect.stringMatching(
      /5 workers in a row were lost.*as last saved.*send a message to continue/s,
    ),
  });
  await expect(sixth.perform("closeSandbox", { step: 6 })).rejects.toMatchObject(refused);
  expect(await savesBegun(agent)).toBe(5);
  expect(engine.fake(agent.id)).toBeDefined();
  await sixth.perform("closeSession", { step: 6, status: "failed" });

  engine.beforeProgram = async () => {};
  const step = await resume(agent, "run-2");
  expect(await savesBegun(agent)).toBe(0);
  const seventh = otherWorker(agent);
  await take(seventh, step);
  await close(agent, step, seventh);
  expect(await saved(agent)).toEqual({ "log.txt": "1\n2\n3\n4\n5\n7\n" });
});

it("no save counts of a worker that was asked to end, before or after it was", async () => {
  const engine = newEngine();
  const script = ["1", "2", "3"].reduce((all, text) => all.answers(writing(text)), scriptedModel());
  const agent = await startOn(database, script, engine);
  await agent.perform("openSession", { chain: agent.runId });
  let saves = 0;
  engine.beforeProgram = () => {
    saves += 1;
    return new Promise(() => undefined);
  };
  const countedSaves = new CountedSaves(database.store.db, new Suspects());
  const ending = otherWorker(agent, { countedSaves });
  await take(ending, 1);
  await untilBegun(agent, 1);
  await countedSaves.countNoMore();
  expect(await savesBegun(agent)).toBe(0);
  const alsoEnding = otherWorker(agent, { countedSaves });
  await take(alsoEnding, 2);
  await eventually("it saves again", () => saves === 2);
  expect(await savesBegun(agent)).toBe(0);

  engine.beforeProgram = async () => {};
  const next = otherWorker(agent);
  await take(next, 3);
  await close(agent, 3, next);
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

it(
  "a call whose files could not be saved has its result, and the log says which step and why",
  { tags: ["invariant-14"] },
  async () => {
    const script = scriptedModel().calls("bash", { command: "echo 1 > a.txt" }).says("Done.");
    const agent = await startDirectAgent(database, script);
    await agent.perform("modelStep", { step: 1 });
    const sandbox = { ...agent.sandbox };
    Object.assign(agent.sandbox, {
      run: (...given: Parameters<typeof sandbox.run>) =>
        given[0].id.startsWith("ws-")
          ? Promise.reject(new Error("The disk is gone."))
          : sandbox.run(...given),
    });
    const said: LogEntry[] = [];
    const environment = new MockActivityEnvironment(
      { attempt: 1, workflowExecution: { workflowId: agent.id, runId: agent.runId } },
      { logger: new DefaultLogger("WARN", (entry) => said.push(entry)) },
    );
    expect(await agent.perform("runTool", { step: 1, index: 0 }, { environment })).toMatchObject({
      outcome: "completed",
    });
    const line = await eventually("the log says so", () =>
      said.find(({ message }) => message.includes("not saved")),
    );
    expect(line.meta).toMatchObject({ step: 1, reason: "The disk is gone." });
  },
);
