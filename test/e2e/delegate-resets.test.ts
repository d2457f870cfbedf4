/** Resets of sessions that gave tasks to others. */
import { describe, expect, it } from "vitest";
import { useAgent } from "../support/agent-harness.ts";
import { bySession } from "../support/by-session.ts";
import {
  afterStart,
  atStart,
  beforeDelegate,
  checkFamily,
  delegating,
  delegationsOf,
} from "../support/delegating.ts";
import { eventually } from "../support/eventually.ts";
import { resetToStep, resetTo } from "../support/reset-run.ts";
import { call, text } from "../support/scripted-model.ts";
import { resultTexts } from "../support/stored.ts";
import { untilCalls } from "../support/waits.ts";
import { startRunFor } from "../support/start-run.ts";

const agent = useAgent();

const statusOf = async (id: string) => (await agent.client.workflow.getHandle(id).describe()).status.name;
const untilCallRuns = (id: string) => untilCalls(agent.database.store, id, "running");
const delegateCall = (task: string, more: object = {}) => call("delegate", { task, ...more });
const SLEEP = [call("bash", { command: "sleep 60" })];

describe("a reset of the parent", () => {
  it("to before the call ends the delegate, and the repeated call gets another [A] [B]", async () => {
    const session = await agent.start(
      bySession({
        "": [[delegateCall("First.")], [delegateCall("Second.")], [text("Done.")]],
        ".s1c0": [SLEEP],
        ".s1c0e2": [SLEEP],
        ".s1c0e3": [SLEEP, [text("Third time.")]],
      }),
      { config: delegating() },
    );
    await untilCallRuns(`${session.id}.s1c0`);
    await resetToStep(agent.client, session.id, 1);
    await untilCallRuns(`${session.id}.s1c0e2`);
    await eventually("the first ends", async () => (await statusOf(`${session.id}.s1c0`)) === "CANCELLED");
    // Between the answer and the delegate's start: the call is the same, and repeated.
    await resetTo(agent.client, session.id, beforeDelegate);
    // The delegate itself is reset: its parent waits for the new run.
    await untilCallRuns(`${session.id}.s1c0e3`);
    await resetToStep(agent.client, `${session.id}.s1c0e3`, 1);
    await agent.client.workflow.getHandle(session.id).result();
    await eventually("the second ends", async () => (await statusOf(`${session.id}.s1c0e2`)) === "CANCELLED");
    const texts = await resultTexts(agent.database.store, session.id);
    expect(texts.at(-1)).toContain("Third time.");
    expect((await delegationsOf(agent.database.store, session.id)).map(({ status }) => status)).toEqual([
      "superseded",
      "superseded",
      "applied",
    ]);
    await checkFamily(agent, session);
  });

  it(
    "to after the start finds the result of a delegate that ended without it",
    { tags: ["D4"] },
    async () => {
      const session = await agent.start(
        bySession({
          "": [[delegateCall("Sleep.")], [text("Done.")]],
          ".s1c0": [SLEEP, [text("I went on without my parent.")]],
        }),
        { config: delegating() },
      );
      const child = `${session.id}.s1c0`;
      await untilCallRuns(child);
      await session.handle.terminate("the test ends it");
      await eventually("the delegate ends", async () => (await statusOf(child)) === "CANCELLED");
      // Resumed by a person, it completes, and its parent's child handle will never report that.
      const message = { id: "go", text: "Go on." };
      await (await startRunFor(agent.client, child, agent.taskQueue, message)).result();
      await resetTo(agent.client, session.id, afterStart);
      expect(await agent.client.workflow.getHandle(session.id).result()).toMatchObject({ result: "Done." });
      expect((await resultTexts(agent.database.store, session.id)).at(-1)).toContain(
        "I went on without my parent.",
      );
      expect((await delegationsOf(agent.database.store, session.id)).at(-1)).toMatchObject({
        childId: child,
        status: "applied",
      });
      await checkFamily(agent, session);
    },
  );

  it("to the start of a completed delegate takes its answer and files, and asks nothing again", async () => {
    const session = await agent.start(
      bySession({
        "": [
          [delegateCall("Write it.", { access: "write" })],
          [call("bash", { command: "cat new.txt" })],
          [text("Done.")],
          [call("bash", { command: "cat new.txt" })],
          [text("Done again.")],
          [call("bash", { command: "cat new.txt" })],
          [text("Done once more.")],
        ],
        ".s1c0": [[call("write_file", { path: "new.txt", content: "of another" })], [text("It is written.")]],
      }),
      { config: delegating() },
    );
    const child = `${session.id}.s1c0`;
    await session.result();
    for (const result of ["Done again.", "Done once more."]) {
      await resetTo(agent.client, session.id, atStart);
      expect(await agent.client.workflow.getHandle(session.id).result()).toMatchObject({ result });
      const texts = await resultTexts(agent.database.store, session.id);
      expect(texts.at(-2)).toContain("It is written.");
      expect(texts.at(-1)).toBe("of another");
    }
    expect(await agent.client.workflow.getHandle(child).result()).toMatchObject({
      status: "completed",
      steps: 2,
      result: "It is written.",
    });
    expect(session.model.log.filter(({ request }) => request?.cacheKey === child)).toHaveLength(2);
    await checkFamily(agent, session);
  });

  it("to after the start, of an older run, continues a delegate that ended with its line", async () => {
    const session = await agent.start(
      bySession({
        "": [[delegateCall("Sleep.")], [text("Done without.")], [text("Done.")]],
        ".s1c0": [SLEEP, [text("I slept.")]],
      }),
      { config: delegating() },
    );
    const child = `${session.id}.s1c0`;
    await untilCallRuns(child);
    const { runId } = await session.handle.describe();
    await resetToStep(agent.client, session.id, 1);
    expect(await agent.client.workflow.getHandle(session.id).result()).toMatchObject({
      result: "Done without.",
    });
    await eventually("the delegate ends", async () => (await statusOf(child)) === "CANCELLED");
    await resetTo(agent.client, session.id, afterStart, { runId });
    expect(await agent.client.workflow.getHandle(session.id).result()).toMatchObject({ result: "Done." });
    expect((await resultTexts(agent.database.store, session.id)).at(-1)).toContain("I slept.");
    await checkFamily(agent, session);
  });
});
