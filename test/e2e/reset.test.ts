/** Successive runs of one session: a reset from Temporal, a resume after a cancel, continue-as-new. */
import { asc, eq } from "drizzle-orm";
import { expect, it } from "vitest";
import { checkpoints, runs, sessions } from "../../activities/store/schema/index.ts";
import { checkSession } from "../support/checker/check-session.ts";
import { type RunningSession, useAgent } from "../support/agent-harness.ts";
import { resetToStep } from "../support/reset-run.ts";
import { scriptedModel, text, type ModelScript } from "../support/scripted-model.ts";
import { callRows, resultTexts, transcriptOf } from "../support/stored.ts";
import { untilCalls } from "../support/waits.ts";
import { wordsAsked } from "../support/scripted-summaries.ts";

const agent = useAgent();

const { stringify } = JSON;
const runsOf = ({ id }: RunningSession) =>
  agent.database.store.db.select().from(runs).where(eq(runs.sessionId, id)).orderBy(asc(runs.ordinal));
const writes = (script: ModelScript, step: number) =>
  script.calls("write_file", { path: `file-${step}.txt`, content: `of step ${step}` });

it(
  "a reset to an earlier step begins an epoch with its files, and keeps the abandoned line",
  { tags: ["A12", "R59"] },
  async () => {
    const script = scriptedModel();
    for (const step of [1, 2, 3, 4]) writes(script, step);
    script
      .says("The first line is done.")
      .calls("bash", { command: "ls; cat file-2.txt" })
      .says("The second line is done.");
    const session = await agent.start(script);
    expect(await session.handle.result()).toMatchObject({ steps: 5, result: "The first line is done." });
    const before = await transcriptOf(agent.database.store, session.id);

    const runId = await resetToStep(agent.client, session.id, 3);
    const reset = agent.client.workflow.getHandle(session.id, runId);
    expect(await reset.result()).toMatchObject({ status: "completed", result: "The second line is done." });

    const rows = await transcriptOf(agent.database.store, session.id);
    // Nothing is deleted: all earlier rows are there, the same except for the mark.
    expect(rows.slice(0, before.length).map((row) => ({ ...row, supersededEpoch: null }))).toEqual(before);
    const live = rows.filter((row) => row.supersededEpoch === null);
    expect(live.map((row) => [row.epoch, row.step, row.slot])).toEqual([
      [1, 0, "user"],
      [1, 1, "assistant"],
      [1, 1, "tool:0"],
      [1, 2, "assistant"],
      [1, 2, "tool:0"],
      [2, 3, "reset"],
      [2, 3, "assistant"],
      [2, 3, "tool:0"],
      [2, 4, "assistant"],
    ]);
    const marked = rows.filter((row) => row.supersededEpoch === 2);
    expect(marked.map((row) => row.step)).toEqual([3, 3, 4, 4, 5]);
    expect(stringify(live.at(-2)?.content)).toContain("of step 2");
    const listed = (await resultTexts(agent.database.store, session.id)).at(-1);
    expect(listed).toBe("file-1.txt\nfile-2.txt\nof step 2");

    const [row] = await agent.database.store.db.select().from(sessions).where(eq(sessions.id, session.id));
    expect(row).toMatchObject({ epoch: 2, status: "completed", result: "The second line is done." });
    const saved = await agent.database.store.db
      .select()
      .from(checkpoints)
      .where(eq(checkpoints.sessionId, session.id));
    const dropped = saved.filter((checkpoint) => checkpoint.supersededEpoch === 2);
    expect(dropped.map((checkpoint) => checkpoint.step)).toEqual(expect.arrayContaining([3]));
    // The model's view of the new line has nothing of the old one.
    expect(wordsAsked(session.model, 5)).toContain("file-2.txt");
    expect(wordsAsked(session.model, 5)).not.toContain("file-3.txt");
    await checkSession(agent, session);
  },
);

it("a cancelled session resumes with the messages before the cancel, then the new, each once", async () => {
  const script = scriptedModel().answers(text("I begin"), { type: "hang" }).says("All three are clear.");
  const session = await agent.start(script);
  await session.until("llm:chunk");
  await session.handle.signal("guidance", { id: "one", text: "use tabs" });
  await session.handle.signal("guidance", { id: "two", text: "no semicolons" });
  await session.handle.cancel();
  await expect(session.result()).rejects.toThrow();
  expect(await session.handle.describe()).toMatchObject({ status: { name: "CANCELLED" } });
  const again = await session.resume("in English", "three");
  expect(await again.result()).toMatchObject({ status: "completed", result: "All three are clear." });
  const words = wordsAsked(session.model);
  expect(words).toContain("I begin [interrupted]");
  const places = ["use tabs", "no semicolons", "in English"].map((said) => {
    expect(words.split(said)).toHaveLength(2);
    return words.indexOf(said);
  });
  expect(places).toEqual(places.toSorted((a, b) => a - b));
  await checkSession(agent, session);
});

it(
  "a session that outgrows its history continues in new ones: no step or message twice",
  { tags: ["A8", "A10"] },
  async () => {
    const total = 24;
    const script = scriptedModel();
    for (let step = 1; step < total; step += 1) script.calls("bash", { command: `echo step ${step}` });
    script.says("That was all.");
    const session = await agent.start(script, { config: { limits: { maxHistoryEvents: 60 } } });
    const finished = session.handle.result();
    for (const at of [2, 7, 12, 17]) {
      await untilCalls(agent.database.store, session.id, "completed", at);
      const message = { id: `said-${at}`, text: `remark number ${at}.` };
      const current = agent.client.workflow.getHandle(session.id);
      await current.signal("guidance", message);
      await current.signal("guidance", message);
      await current.signal("guidance", { id: "said-2", text: "remark number 2." });
    }
    expect(await finished).toMatchObject({ status: "completed", result: "That was all." });
    expect((await runsOf(session)).length).toBeGreaterThanOrEqual(3);
    const rows = await transcriptOf(agent.database.store, session.id);
    const answered = rows.filter((row) => row.slot === "assistant").map((row) => row.step);
    expect(answered).toEqual(Array.from({ length: total }, (_, place) => place + 1));
    expect(rows.every((row) => row.epoch === 1 && row.supersededEpoch === null)).toBe(true);
    const said = rows.filter((row) => row.role === "user").map((row) => stringify(row.content));
    for (const at of [2, 7, 12, 17])
      expect(said.filter((words) => words.includes(`remark number ${at}.`))).toHaveLength(1);
    const calls = await callRows(agent.database.store, session.id);
    expect(calls.map((row) => row.status)).toEqual(Array.from({ length: total - 1 }, () => "completed"));
    await checkSession(agent, session);
  },
);
