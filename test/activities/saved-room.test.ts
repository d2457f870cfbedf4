/** Saves of a session that may store no more: each takes the place of the one before, and nothing else is lost. */
import { sql } from "drizzle-orm";
import { expect, it } from "vitest";
import { readWorkspace, savedBytes } from "../../activities/store/checkpoints.ts";
import { supersede } from "../../activities/store/supersede.ts";
import { bash, close, newEngine, startOn, untilSaved } from "../support/engine-session.ts";
import { scriptedModel } from "../support/scripted-model.ts";
import { useDatabase } from "../support/test-database.ts";

const database = useDatabase(10);

/** So that two saves fill what is allowed: gzip makes nothing of it. */
const noise = (step: number) => bash(`head -c 700000 /dev/urandom > noise; echo ${step} > step.txt`);

it("keeps the newest files and the first steps', and tells the model of the others once", async () => {
  const engine = newEngine();
  const steps = [1, 2, 3, 4, 5];
  const script = steps.reduce((all, step) => all.answers(noise(step)), scriptedModel()).says("Done.");
  const agent = await startOn(database, script, engine);
  const { db } = database.store;
  await db.execute(sql`update sessions set config = jsonb_set(config::jsonb, '{limits,maxSaved}', '"1m"')::json
    where id = ${agent.id}`);
  await agent.perform("openSession", { chain: agent.runId });
  for (const step of steps) {
    await agent.step(step);
    await untilSaved(agent, step);
  }
  const rows = async () =>
    (
      await db.execute<{ step: number }>(
        sql`select step from checkpoints where session_id = ${agent.id} order by step`,
      )
    ).rows.map(({ step }) => step);
  expect(await rows()).toEqual([1, 5]);
  expect(await savedBytes(db, agent.id)).toBeLessThan(1.5 * 2 ** 20);
  const stepFile = async (atStep?: number) =>
    (await readWorkspace(db, agent.id, atStep === undefined ? {} : { atStep }))?.flatMap((file) =>
      file.kind === "file" && file.path === "step.txt" ? [Buffer.from(file.bytes).toString()] : [],
    );
  expect(await stepFile()).toEqual(["5\n"]);
  expect(await stepFile(1)).toEqual(["1\n"]);
  expect((await agent.events()).filter((type) => type === "sandbox:saves-full")).toHaveLength(1);
  const informed = agent.model.requests.map((request) =>
    JSON.stringify(request.items).includes("which is the limit of a session"),
  );
  expect(informed).toEqual([false, false, true, true, true]);

  const noticeOf = (step: number) =>
    db.transaction(async (tx) => {
      await supersede(tx, agent.id, 2, { step, phase: "model" });
      const { rows: found } = await tx.execute<{ words: string }>(sql`
        select content::text as words from stored_messages where session_id = ${agent.id} and slot = 'reset'`);
      return Promise.reject(new Error(found[0]?.words));
    });
  await expect(noticeOf(4)).rejects.toThrow("at the last save before that");
  await expect(noticeOf(2)).rejects.toThrow("as they were then");

  await close(agent, 5);
  expect(await stepFile()).toEqual(["5\n"]);
});
