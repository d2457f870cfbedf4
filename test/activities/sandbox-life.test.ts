/** A session's sandbox across runs, workers and hosts: when it is created, saved and removed, and by which of them. */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { withSandboxLock } from "../../activities/store/session-locks.ts";
import { eventually } from "../support/eventually.ts";
import {
  bash,
  close,
  newEngine,
  otherWorker,
  resume,
  saved,
  startCommands,
  startOn,
  untilSaved,
} from "../support/engine-session.ts";
import { scriptedModel } from "../support/scripted-model.ts";
import { callRows, resultTexts } from "../support/stored.ts";
import { useDatabase } from "../support/test-database.ts";

const database = useDatabase(12);

describe("the last save of a run", () => {
  it("is made although an interrupted step of an earlier run was saved under a higher number", async () => {
    const { engine, agent } = await startCommands(database, "echo 1 > n.txt", "echo 2 > n.txt");
    await agent.step(1);
    await untilSaved(agent);
    // Steps 2 and 3 were interrupted before the model answered; a background command continued writing.
    await writeFile(join(engine.fake(agent.id)?.root ?? "", "late.txt"), "late");
    await close(agent, 3);
    const step = await resume(agent, "run-2");
    expect(step).toBe(4);
    await agent.step(step);
    await close(agent, step);
    expect(await saved(agent)).toEqual({ "late.txt": "late", "n.txt": "2\n" });
  });

  it("is made even if the run reports step 0 as its last", async () => {
    const { engine, agent } = await startCommands(database, "echo 1 > n.txt");
    await agent.step(1);
    await untilSaved(agent);
    await writeFile(join(engine.fake(agent.id)?.root ?? "", "late.txt"), "late");
    await close(agent, 0);
    expect(await saved(agent)).toEqual({ "late.txt": "late", "n.txt": "1\n" });
  });

  it("does not contain files of steps that a reset abandoned", async () => {
    const { engine, agent } = await startCommands(
      database,
      "echo 1 > n.txt",
      "echo 2 > n.txt",
      "cat n.txt",
      "cat n.txt",
    );
    await agent.step(1);
    await untilSaved(agent);
    await agent.step(2);
    await untilSaved(agent, 2);
    // Reset to before step 2, and ended before a tool was called.
    agent.runId = "run-2";
    await agent.perform("modelStep", { step: 2 });
    await close(agent, 1);
    expect(await saved(agent)).toEqual({ "n.txt": "1\n" });
    expect(engine.fake(agent.id)).toBeUndefined();
    expect(await agent.events()).not.toContain("sandbox:lost");
    await agent.step(await resume(agent, "run-3"));
    expect((await resultTexts(database.store, agent.id)).at(-1)).toBe("1");
  });

  it("keeps the sandbox if it fails, and is made by the next attempt", async () => {
    const { engine, agent } = await startCommands(database, "echo 1 > n.txt");
    await agent.step(1);
    await untilSaved(agent);
    await writeFile(join(engine.fake(agent.id)?.root ?? "", "late.txt"), "late");
    engine.beforeProgram = () => Promise.reject(new Error("The disk does not answer."));
    await expect(agent.perform("closeSandbox", { step: 1 })).rejects.toThrow("The disk does not answer.");
    expect(engine.fake(agent.id)).toBeDefined();
    engine.beforeProgram = async () => {};
    await agent.perform("closeSandbox", { step: 1 }, { attempt: 2 });
    expect(await saved(agent)).toMatchObject({ "late.txt": "late" });
    expect(engine.fake(agent.id)).toBeUndefined();
  });

  it("reports what is in no save if the sandbox was lost, without creating a sandbox for it", async () => {
    const { engine, agent } = await startCommands(database, "echo 1 > n.txt", "echo 2 > n.txt");
    await agent.step(1);
    await untilSaved(agent);
    engine.beforeProgram = () => Promise.reject(new Error("The disk does not answer."));
    await agent.step(2);
    await engine.host.remove(agent.id);
    await agent.perform("closeSandbox", { step: 2 }).catch(() => undefined);
    await agent.perform("closeSandbox", { step: 2 }, { attempt: 2 });
    expect(engine.made).toBe(1);
    expect((await agent.events()).filter((type) => type === "sandbox:lost")).toHaveLength(1);
  });

  it("is not repeated, and nothing counts as lost, if an attempt's answer was lost", async () => {
    const { engine, agent } = await startCommands(database, "echo 1 > n.txt");
    await agent.step(1);
    const remove = engine.host.remove.bind(engine.host);
    Object.assign(engine.host, {
      async remove(id: string) {
        await remove(id);
        throw new Error("The answer was lost.");
      },
    });
    await expect(agent.perform("closeSandbox", { step: 1 })).rejects.toThrow("The answer was lost.");
    Object.assign(engine.host, { remove });
    await agent.perform("closeSandbox", { step: 1 }, { attempt: 2 });
    expect(engine.made).toBe(1);
    const events = await agent.events();
    expect(events.filter((type) => type === "sandbox:removed")).toHaveLength(1);
    expect(events).not.toContain("sandbox:lost");
  });
});

describe("a worker with an open sandbox", () => {
  it("opens the next run's sandbox if another worker on the same engine has closed this one", async () => {
    const { agent } = await startCommands(database, "echo 1 > n.txt", "cat n.txt");
    await agent.step(1);
    await untilSaved(agent);
    await close(agent, 1, otherWorker(agent));
    const step = await resume(agent, "run-2");
    await agent.perform("openSandbox", { step });
    await agent.step(step);
    expect(await resultTexts(database.store, agent.id)).toEqual([expect.anything(), "1"]);
    expect((await callRows(database.store, agent.id)).map(({ status }) => status)).toEqual([
      "completed",
      "completed",
    ]);
  });

  it("treats it as another sandbox if the session returns to a host that it had left", async () => {
    const [first, second] = [newEngine("first"), newEngine("second")];
    const agent = await startOn(
      database,
      scriptedModel()
        .answers(bash("echo 1 > n.txt; echo old > left.txt"))
        .answers(bash("echo 2 > n.txt; rm left.txt"))
        .answers(bash("cat n.txt; ls")),
      first,
    );
    const elsewhere = otherWorker(agent, { sandboxHost: second.host });
    await agent.step(1);
    await untilSaved(agent);
    await agent.perform("modelStep", { step: 2 });
    await elsewhere.perform("runTool", { step: 2, index: 0 });
    await untilSaved(agent, 2);
    await agent.step(3);
    expect((await resultTexts(database.store, agent.id)).at(-1)).toBe("2\nn.txt");
    expect(first.made).toBe(2);
  });
});

describe("a sandbox that would never be removed is not created", () => {
  it("by an opening that continues after another run has claimed the session", async () => {
    const engine = newEngine();
    const agent = await startOn(database, scriptedModel().says("Done."), engine);
    await agent.perform("openSession", { chain: "run-1" });
    const [locked, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const held = withSandboxLock(database.store, agent.id, () => {
      locked.resolve();
      return released.promise;
    });
    await locked.promise;
    const late = agent.perform("openSandbox", { step: 1 }).catch((error: unknown) => error);
    await eventually("the opening waits for the session", async () => {
      const { rowCount } = await database.store.pool.query(
        "select 1 from pg_stat_activity where wait_event = 'advisory' and datname = current_database()",
      );
      return rowCount === 1;
    });
    await resume(agent, "run-2");
    released.resolve();
    await held;
    expect(await late).toMatchObject({ type: "Superseded" });
    expect(engine.made).toBe(0);
  });

  it("by an attempt that continues after its own run has closed the sandbox", async () => {
    const engine = newEngine();
    const agent = await startOn(database, scriptedModel().says("Done."), engine);
    await agent.step(1);
    await agent.perform("openSandbox", { step: 1 });
    await agent.perform("closeSandbox", { step: 1 });
    await expect(otherWorker(agent).perform("openSandbox", { step: 1 })).rejects.toMatchObject({
      type: "Superseded",
    });
    await agent.perform("closeSession", { step: 1, status: "completed" });
    expect(engine.fake(agent.id)).toBeUndefined();
  });

  it("by an opening that fails after the engine has created it", async () => {
    const { engine, agent } = await startCommands(database, "echo 1 > n.txt");
    await agent.step(1);
    await close(agent, 1);
    await resume(agent, "run-2");
    engine.beforeProgram = () => Promise.reject(new Error("The disk does not answer."));
    await expect(agent.perform("openSandbox", { step: 2 })).rejects.toThrow("The disk does not answer.");
    expect(engine.made).toBe(2);
    expect(engine.fake(agent.id)).toBeUndefined();
  });
});
