/**
 * `retry` and Temporal's own reset, of sessions that run, have ended, were reset before, or outgrew a run. Each test
 * has its own session and mostly waits for its sandbox and for Temporal, so they run in parallel.
 */
import { eq } from "drizzle-orm";
import { describe, expect, it } from "vitest";
import { latestCheckpoint } from "../../activities/store/checkpoints.ts";
import { guidance } from "../../activities/store/schema/index.ts";
import { exitCodes } from "../../client/console/errors.ts";
import type { ParsedRequest } from "../support/model-server/wire.ts";
import { useAgent } from "../support/agent-harness.ts";
import { sessionRow, retry } from "../support/client-services.ts";
import { eventually } from "../support/eventually.ts";
import { scriptedModel, text, type ModelScript } from "../support/scripted-model.ts";
import {
  longSession,
  noisyStep,
  says,
  wordsAsked,
  timesAsked,
  noisySteps,
} from "../support/scripted-summaries.ts";
import { callRows, resultTexts, transcriptOf, roundsOf } from "../support/stored.ts";

const agent = useAgent();

const store = () => agent.database.store;
const writes = (script: ModelScript, step: number) =>
  script.calls("bash", { command: `echo of step ${step} > file-${step}.txt; ls` });
const resultOf = (id: string) => agent.client.workflow.getHandle(id).result();

/** The model's view, apart from the note about the reset. */
function conversation(request: ParsedRequest | undefined): string[] {
  const items = (request?.items ?? []).map((item) => JSON.stringify(item));
  return items.filter((item) => !item.includes("went back to this point"));
}

const liveRows = async (id: string) =>
  (await transcriptOf(store(), id)).filter((row) => row.supersededEpoch === null);

/** A session of four steps that wrote a file each, and its end. */
function fourSteps(): ModelScript {
  const script = scriptedModel();
  for (const step of [1, 2, 3, 4]) writes(script, step);
  return script.says("The first line is done.");
}

describe.concurrent("retry of a session that has ended", () => {
  it(
    "restores the model's view of that moment, with its files, and adds a note",
    { tags: ["A12", "R59"] },
    async () => {
      const script = fourSteps().calls("bash", { command: "ls; cat file-2.txt" }).says("Done again.");
      const session = await agent.run(script);
      const retried = await retry(agent, session.id, 3);
      expect(retried).toMatchObject({ step: 3, epoch: 2 });
      expect(await resultOf(session.id)).toMatchObject({ result: "Done again." });
      const { requests } = session.model;
      expect(conversation(requests[5])).toEqual(conversation(requests[2]));
      expect(wordsAsked(session.model, 5)).toContain("went back to this point");
      expect((await resultTexts(store(), session.id)).at(-1)).toBe("file-1.txt\nfile-2.txt\nof step 2");
      expect(await session.dataOf("session:started")).toEqual([
        expect.objectContaining({ continued: false }),
        expect.objectContaining({ continued: true, resetTo: 3 }),
      ]);
    },
  );

  it("goes back from a retried line, also further", { tags: ["A12"] }, async () => {
    const script = fourSteps();
    writes(script, 5).says("The second line is done.").calls("bash", { command: "ls" }).says("The third.");
    const session = await agent.run(script);
    await retry(agent, session.id, 4);
    await resultOf(session.id);
    const retried = await retry(agent, session.id, 2);
    expect(retried.epoch).toBe(3);
    expect(await resultOf(session.id)).toMatchObject({ result: "The third.", steps: 3 });
    expect((await resultTexts(store(), session.id)).at(-1)).toBe("file-1.txt");
    const { requests } = session.model;
    expect(conversation(requests[7])).toEqual(conversation(requests[1]));
    const live = await liveRows(session.id);
    expect(live.map((row) => row.epoch)).toEqual([1, 1, 1, 3, 3, 3, 3]);
    const all = await transcriptOf(store(), session.id);
    expect(new Set(all.map((row) => row.supersededEpoch))).toEqual(new Set([null, 2, 3]));
  });

  it("repeats the step at which it had failed", async () => {
    const script = scriptedModel();
    writes(script, 1).fails(401, "No such key.").says("With a key it goes.");
    const session = await agent.start(script);
    await expect(session.result()).rejects.toThrow();
    expect(await retry(agent, session.id)).toMatchObject({ step: 2 });
    expect(await resultOf(session.id)).toMatchObject({ status: "completed", result: "With a key it goes." });
  });

  it("does not repeat a cancel", async () => {
    const script = scriptedModel();
    writes(script, 1).answers(text("I begin"), { type: "hang" }).says("Done this time.");
    const session = await agent.start(script);
    await session.until("llm:chunk");
    await session.handle.cancel();
    await expect(session.result()).rejects.toThrow();
    await retry(agent, session.id, 2);
    expect(await resultOf(session.id)).toMatchObject({ status: "completed", result: "Done this time." });
    expect(wordsAsked(session.model)).not.toContain("I begin");
  });

  it("is refused if there is no such step, or none at all", async () => {
    const session = await agent.run(scriptedModel().says("Done."));
    await expect(retry(agent, session.id, 4)).rejects.toMatchObject({
      exitCode: exitCodes.usage,
      message: expect.stringContaining("no step 4"),
    });
    const failed = await agent.start(scriptedModel().fails(401, "No such key."));
    await expect(failed.result()).rejects.toThrow();
    await expect(retry(agent, failed.id, 2)).rejects.toMatchObject({ exitCode: exitCodes.usage });
    await expect(sessionRow(agent, "no-such-session")).rejects.toMatchObject({
      exitCode: exitCodes.impossible,
    });
  });
});

describe.concurrent("retry of a session that runs", () => {
  it("ends its command with its sandbox, and continues with the files of that moment", async () => {
    const script = scriptedModel();
    writes(script, 1);
    writes(script, 2)
      .calls("bash", { command: "echo late > late.txt; sleep 600" })
      .calls("bash", { command: "ls" })
      .says("Done.");
    const session = await agent.start(script);
    // A call has its row before the files of the step before it are saved, which its command waits for.
    await eventually("the command runs", async () => {
      const [third] = (await callRows(store(), session.id, "running")).filter((row) => row.step === 3);
      return third && (await latestCheckpoint(store().db, session.id))?.step === 2;
    });
    await retry(agent, session.id, 3);
    expect(await resultOf(session.id)).toMatchObject({ status: "completed", result: "Done." });
    expect((await resultTexts(store(), session.id)).at(-1)).toBe("file-1.txt\nfile-2.txt");
    const calls = await callRows(store(), session.id);
    expect(calls.map((row) => [row.step, row.epoch, row.supersededEpoch, row.status])).toEqual([
      [1, 1, null, "completed"],
      [2, 1, null, "completed"],
      [3, 1, 2, "running"],
      [3, 2, null, "completed"],
    ]);
  });

  it(
    "delivers later messages again, each once, unless they are dropped",
    { tags: ["invariant-6"] },
    async () => {
      const said = Promise.withResolvers<void>();
      const script = scriptedModel();
      writes(script, 1);
      writes(script, 2)
        .replies(async () => {
          await said.promise;
          return says("I am all ears.");
        })
        .says("Heard.")
        .says("Heard again.")
        .says("Not heard.");
      const session = await agent.start(script);
      const many = Array.from({ length: 105 }, (_, place) => ({
        id: `m${place}`,
        text: `remark <${place}>`,
      }));
      await eventually("the third step is asked for", () => session.model.requests.length === 3);
      // More than the workflow carries: they are parked, and delivered from there.
      await Promise.all(many.map((message) => session.handle.signal("guidance", message)));
      said.resolve();
      await session.result();
      await retry(agent, session.id, 2);
      await resultOf(session.id);
      const heard = () =>
        timesAsked(
          session.model,
          many.map((message) => message.text),
        );
      expect(heard().join("")).toBe("1".repeat(many.length));
      const parked = await store().db.select().from(guidance).where(eq(guidance.sessionId, session.id));
      expect(parked.filter((row) => row.deliveredSequence === null)).toEqual([]);
      await retry(agent, session.id, 2, { dropMessages: true });
      await resultOf(session.id);
      expect(heard().join("")).toBe("0".repeat(many.length));
    },
  );
});

describe.concurrent("retry across what shapes a session", () => {
  it("undoes a compaction, so that its messages are in view again", async () => {
    const noisy = noisySteps(1, 12, 80);
    const again = [noisyStep(101, 20), says("The second line.")];
    const script = longSession({ steps: [...noisy, says("The first line."), ...again] });
    const session = await agent.run(script, {
      served: { "gpt-4o": { window: 16_000, maxOutput: 1_000 } },
      // In such a window hiding old results would come first, and be enough.
      config: { contextWindow: 16_000, maxOutput: 1_000, context: { options: { prune: "never" } } },
    });
    const rounds = () => roundsOf(store(), session.id);
    const [first] = await rounds();
    const step = (first?.step ?? 0) - 1;
    expect(step).toBeGreaterThan(1);
    const before = session.model.requests.length;
    await retry(agent, session.id, step);
    await resultOf(session.id);
    expect(conversation(session.model.requests[before])).toEqual(
      conversation(session.model.requests[step - 1]),
    );
    const after = await rounds();
    expect(after.filter((row) => row.round === first?.round && row.epoch === 1)).toMatchObject([
      { supersededEpoch: 2 },
    ]);
    // The number is free again, and only the new compaction has it.
    for (const row of after.filter((round) => round.supersededEpoch === null)) expect(row.epoch).toBe(2);
  });

  it("finds the step in an earlier run of a session that outgrew its history", async () => {
    const script = scriptedModel();
    for (let step = 1; step <= 12; step += 1) writes(script, step);
    script.says("The first line.").calls("bash", { command: "ls" }).says("The second line.");
    const session = await agent.run(script, { config: { limits: { maxHistoryEvents: 50 } } });
    const newest = (await agent.client.workflow.getHandle(session.id).describe()).runId;
    const retried = await retry(agent, session.id, 3);
    expect(retried.fromRun).not.toBe(newest);
    expect(await resultOf(session.id)).toMatchObject({ result: "The second line.", steps: 4 });
    expect((await resultTexts(store(), session.id)).at(-1)).toBe("file-1.txt\nfile-2.txt");
    expect(conversation(session.model.requests[13])).toEqual(conversation(session.model.requests[2]));
  });
});
