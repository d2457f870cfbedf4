/** A session that begins with another's past and leaves that one unchanged. */
import { eq } from "drizzle-orm";
import { expect, it } from "vitest";
import { checkpoints } from "../../activities/store/schema/index.ts";
import { exitCodes } from "../../client/console/errors.ts";
import { forkSession } from "../../client/sessions/fork-session.ts";
import { type RunningSession, useAgent } from "../support/agent-harness.ts";
import { clientServices, sessionRow } from "../support/client-services.ts";
import { eventually } from "../support/eventually.ts";
import { call, scriptedModel, type ModelScript } from "../support/scripted-model.ts";
import { longSession, says, wordsAsked, noisySteps } from "../support/scripted-summaries.ts";
import { callRows, resultTexts, transcriptOf, wholeDatabase, roundsOf } from "../support/stored.ts";

const agent = useAgent();

const store = () => agent.database.store;
const writes = (script: ModelScript, step: number) =>
  script.calls("bash", { command: `echo of step ${step} > file-${step}.txt; ls` });

async function fork(from: RunningSession, fromStep?: number, message?: string): Promise<RunningSession> {
  const id = `${from.id}-fork-${fromStep ?? "end"}`;
  const forked = agent.adopt(id, from);
  await forkSession(clientServices(agent), await sessionRow(agent, from.id), { fromStep, message, id });
  return forked;
}

/** Every row of a session except those that a fork may change. */
async function rowsOf({ id }: RunningSession): Promise<string[]> {
  const all = (await wholeDatabase(store())).split("\n");
  return all.filter((row) => row.includes(id) && !row.includes(`${id}-fork`)).toSorted();
}

it("a fork continues from before a step, with its files and a note; the other is unchanged", async () => {
  const script = scriptedModel();
  for (const step of [1, 2, 3]) writes(script, step);
  script
    .says("The first line is done.")
    .calls("bash", { command: "ls; cat file-2.txt" })
    .calls("read_output", { handle: "s1c0" })
    .says("The fork is done.");
  const session = await agent.run(script);
  const before = await rowsOf(session);
  const forked = await fork(session, 3, "Take the other way.");
  expect(await forked.result()).toMatchObject({ result: "The fork is done.", steps: 5 });
  expect(await rowsOf(session)).toEqual(before);
  const { requests } = session.model;
  const words = (at: number) => (requests[at]?.items ?? []).map((item) => JSON.stringify(item));
  // What the model saw then, the fork's note, and the message.
  expect(words(4).slice(0, -2)).toEqual(words(2));
  expect(words(4).at(-2)).toContain(`an earlier point of session ${session.id}`);
  expect(words(4).at(-1)).toContain("Take the other way.");
  const texts = await resultTexts(store(), forked.id);
  expect(texts.at(-2)).toBe("file-1.txt\nfile-2.txt\nof step 2");
  expect(texts.at(-1)).toContain("file-1.txt");
  const rows = await transcriptOf(store(), forked.id);
  expect(rows.map((row) => [row.epoch, row.step, row.slot])).toEqual([
    [1, 0, "user"],
    [1, 1, "assistant"],
    [1, 1, "tool:0"],
    [1, 2, "assistant"],
    [1, 2, "tool:0"],
    [1, 3, "reset"],
    [1, 3, "user"],
    [1, 3, "assistant"],
    [1, 3, "tool:0"],
    [1, 4, "assistant"],
    [1, 4, "tool:0"],
    [1, 5, "assistant"],
  ]);
  expect(new Set(rows.map((row) => row.sequence)).size).toBe(rows.length);
});

it("it copies the compactions so far; a fork of everything, or of a fork, continues at the end", async () => {
  const noisy = noisySteps(1, 12, 80);
  const script = longSession({
    steps: [...noisy, says("One."), says("Two."), says("Three."), says("Four.")],
  });
  const session = await agent.run(script, {
    served: { "gpt-4o": { window: 16_000, maxOutput: 1_000 } },
    // In such a window hiding old results would come first, and be enough.
    config: { contextWindow: 16_000, maxOutput: 1_000, context: { options: { prune: "never" } } },
  });
  const rounds = await roundsOf(store(), session.id);
  const step = rounds[0]?.step ?? 0;
  const early = await fork(session, step - 1, "Say so at once.");
  expect(await early.result()).toMatchObject({ result: "Two.", rounds: 0 });
  expect((await transcriptOf(store(), early.id)).some((row) => row.isCompacted)).toBe(false);
  const all = await fork(session, undefined, "And what of it?");
  expect(await all.result()).toMatchObject({ result: "Three." });
  expect((await roundsOf(store(), all.id)).length).toBeGreaterThanOrEqual(rounds.length);
  const view = wordsAsked(all.model);
  expect(view).toContain("Session Summary (Compaction Round");
  expect(view).toContain("One.");
  const again = await fork(all, undefined, "Once more.");
  expect(await again.result()).toMatchObject({ result: "Four." });
});

it("copies a chain of files once, onto itself", async () => {
  const script = scriptedModel();
  for (const step of [1, 2, 3]) writes(script, step);
  const session = await agent.run(script.says("Done.").calls("bash", { command: "ls" }).says("Forked."));
  const forked = await fork(session, 5, "List them.");
  await forked.result();
  expect((await resultTexts(store(), forked.id)).at(-1)).toBe("file-1.txt\nfile-2.txt\nfile-3.txt");
  const saved = await store().db.select().from(checkpoints).where(eq(checkpoints.sessionId, forked.id));
  const mine = new Set(saved.map((row) => row.id));
  for (const row of saved) if (row.parentId !== null) expect(mine).toContain(row.parentId);
});

it("is refused for a missing step, a used id, and a step whose calls still run", async () => {
  const script = scriptedModel();
  writes(script, 1);
  const session = await agent.start(script.answers(call("bash", { command: "sleep 600" })));
  await eventually("the second step's call runs", async () =>
    (await callRows(store(), session.id, "running")).some((row) => row.step === 2),
  );
  const row = await sessionRow(agent, session.id);
  const order = { message: undefined, id: `${session.id}-no` };
  const refused = (fromStep: number | undefined, id = order.id) =>
    forkSession(clientServices(agent), row, { ...order, fromStep, id });
  await expect(refused(9)).rejects.toMatchObject({ exitCode: exitCodes.usage });
  await expect(refused(undefined)).rejects.toMatchObject({
    exitCode: exitCodes.impossible,
    fix: expect.stringContaining("--from-step 2"),
  });
  await expect(refused(2, session.id)).rejects.toMatchObject({ exitCode: exitCodes.impossible });
  expect(await transcriptOf(store(), order.id)).toEqual([]);
});
