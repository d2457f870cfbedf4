/** A cancel ends the wait for a sandbox that never answers: without it each of these tests would hang. */
import { describe, expect, it } from "vitest";
import { close, newEngine, resume, saved, startCommands, startOn } from "../support/engine-session.ts";
import { eventually } from "../support/eventually.ts";
import { untilAborted } from "../support/fake-engine.ts";
import { scriptedModel } from "../support/scripted-model.ts";
import { callRows, resultTexts } from "../support/stored.ts";
import { useDatabase } from "../support/test-database.ts";

const database = useDatabase(12);

describe("a cancel ends", () => {
  it.each(["beforeOpen", "beforeProgram"] as const)(
    "a call and the opening itself while a sandbox is opened (%s), which is then removed",
    async (wait) => {
      const { engine, agent } = await startCommands(database, "echo 1 > n.txt", "cat n.txt");
      await agent.step(1);
      await close(agent, 1);
      const step = await resume(agent, "run-2");
      await agent.perform("modelStep", { step });
      const reached = Promise.withResolvers<void>();
      engine[wait] = (signal) => {
        reached.resolve();
        return untilAborted(signal);
      };
      const environments = [agent.environment(), agent.environment()] as const;
      const opening = agent.perform("openSandbox", { step }, { environment: environments[0] });
      const running = agent.perform("runTool", { step, index: 0 }, { environment: environments[1] });
      await reached.promise;
      await eventually(
        "the call has begun",
        async () => (await callRows(database.store, agent.id)).at(-1)?.status === "running",
      );
      for (const environment of environments) environment.cancel();
      await expect(opening).rejects.toThrow("CANCELLED");
      expect(await running).toMatchObject({ outcome: "interrupted" });
      engine[wait] = async () => {};
      await close(agent, step);
      expect(engine.fake(agent.id)).toBeUndefined();
      expect(await agent.events()).not.toContain("sandbox:lost");
      expect(await saved(agent)).toEqual({ "n.txt": "1\n" });
    },
  );

  it("a call that waits for a save, and a save before a fresh history; the last save waits", async () => {
    const { engine, agent } = await startCommands(database, "echo 1 > n.txt", "echo 2 > n.txt");
    const [reached, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    engine.beforeProgram = () => {
      reached.resolve();
      return released.promise;
    };
    await agent.step(1);
    await reached.promise;
    await agent.perform("modelStep", { step: 2 });
    const environments = [agent.environment(), agent.environment()] as const;
    const running = agent.perform("runTool", { step: 2, index: 0 }, { environment: environments[0] });
    await eventually(
      "the call has begun",
      async () => (await callRows(database.store, agent.id)).at(-1)?.status === "running",
    );
    environments[0].cancel();
    expect(await running).toMatchObject({ outcome: "interrupted" });
    const saving = agent.perform("saveWorkspace", { step: 2 }, { environment: environments[1] });
    environments[1].cancel();
    await expect(saving).rejects.toThrow("CANCELLED");
    const closing = close(agent, 2);
    released.resolve();
    await closing;
    expect(await saved(agent)).toEqual({ "n.txt": "1\n" });
  });

  it("a call of a sandbox that does not answer", async () => {
    const engine = newEngine();
    const agent = await startOn(
      database,
      scriptedModel().calls("write_file", { path: "n.txt", content: "1" }),
      engine,
    );
    await agent.perform("openSandbox", { step: 1 });
    await agent.perform("modelStep", { step: 1 });
    const asked = Promise.withResolvers<void>();
    engine.beforeFile = () => {
      asked.resolve();
      return new Promise(() => undefined);
    };
    const environment = agent.environment();
    const running = agent.perform("runTool", { step: 1, index: 0 }, { environment });
    await asked.promise;
    environment.cancel();
    expect(await running).toMatchObject({ outcome: "interrupted" });
    expect(await resultTexts(database.store, agent.id)).toEqual([
      expect.stringContaining("the sandbox has not confirmed that it ended"),
    ]);
  });
});
