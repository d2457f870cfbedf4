/**
 * Two workers on one queue: one is stopped during a step, the other continues the step, and the first one's late writes
 * are refused.
 */
import { describe, expect, it } from "vitest";
import { checkSession } from "../support/checker/check-session.ts";
import { eventually } from "../support/eventually.ts";
import { scriptedModel, text } from "../support/scripted-model.ts";
import { answersOf, resultTexts, transcriptOf } from "../support/stored.ts";
import { startWithTwo } from "../support/killable-session.ts";
import { busyWith } from "../support/worker-process.ts";
import { useDatabase } from "../support/test-database.ts";
import { untilCalls, untilTaken } from "../support/waits.ts";
import { touch } from "../support/in-container.ts";

const database = useDatabase(20);

describe("a worker stopped past its heartbeat, which resumes when another has finished the step", () => {
  const quick = { LONGHAUL_HEARTBEAT_TIMEOUT_MS: "3000" };

  it(
    "has its answer refused: the transcript has one, and watchers see no text of the late one",
    { tags: ["R20"] },
    async () => {
      const late = Promise.withResolvers<void>();
      const script = scriptedModel()
        .replies(async () => {
          await late.promise;
          return { parts: [text("The late answer.")] };
        })
        .says("The answer that counts.");
      const { session, workers } = await startWithTwo(database, script, quick);
      await eventually("the model is asked", () => session.model.log.length === 1, 60_000);
      // Stopped while it opens the sandbox, it would keep the session's row locked until Postgres ends its transaction.
      await session.until("sandbox:created");
      const first = await busyWith(session, workers, "modelStep");
      first.stop();
      await session.handle.result();
      late.resolve();
      const before = await transcriptOf(database.store, session.id);
      first.resume();
      await eventually(
        "the late worker is alive again",
        async () => (await first.terminate()) !== undefined,
        60_000,
      );
      expect(await transcriptOf(database.store, session.id)).toEqual(before);
      const answers = await answersOf(database.store, session.id);
      expect(JSON.stringify(answers.map((row) => row.content))).toContain("The answer that counts.");
      expect(answers).toHaveLength(1);
      expect(JSON.stringify(await session.events())).not.toContain("The late answer.");
      await checkSession(session.services, session, { kills: 1 });
    },
  );

  it("runs no command again and stores no second result", { tags: ["R20"] }, async () => {
    const script = scriptedModel()
      .calls("bash", { command: "echo line >> n.txt; until [ -e go ]; do sleep 0.2; done; echo done" })
      .calls("bash", { command: "cat n.txt" })
      .says("Done.");
    const { session, workers } = await startWithTwo(database, script, quick);
    await untilCalls(database.store, session.id, "running");
    const first = await busyWith(session, workers, "runTool");
    first.stop();
    await untilTaken(database.store, session.id, 2);
    // Both follow the same command from here on; the first sees its end only when it resumes.
    await touch(session.sandbox, "/workspace/go");
    await untilCalls(database.store, session.id, "completed");
    first.resume();
    // Its own result of the call arrives, and is refused, before it can end.
    await eventually(
      "the late worker is alive again",
      async () => (await first.terminate()) !== undefined,
      60_000,
    );
    expect(await session.handle.result()).toMatchObject({ status: "completed" });
    const [waited, counted] = await resultTexts(database.store, session.id);
    expect(waited).toMatch(/^done\b/);
    expect(counted).toBe("line");
    const rows = await transcriptOf(database.store, session.id);
    expect(rows.filter((row) => row.step === 1 && row.slot === "tool:0")).toHaveLength(1);
    const toolResults = (await session.events()).filter((event) => event.type === "llm:tool-result");
    expect(toolResults.map((event) => event.step)).toEqual([1, 2]);
    expect(session.model.log).toHaveLength(3);
    await checkSession(session.services, session);
  });
});
