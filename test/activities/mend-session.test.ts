/** Secrets of the worker that a client, which does not know them, stored in a session's rows. */
import { eq, sql } from "drizzle-orm";
import { expect, it } from "vitest";
import { createSanitizer } from "../../activities/redaction/sanitizer.ts";
import { MASK } from "../../activities/redaction/secret-mask.ts";
import { enterGuidance } from "../../activities/store/guidance.ts";
import { createSchedule, findSchedule } from "../../activities/store/batches.ts";
import { sessions } from "../../activities/store/schema/index.ts";
import { createActivities, type AgentDeps } from "../../activities/index.ts";
import { createSession, findSession } from "../../activities/store/sessions.ts";
import { attemptOf, loneDeps } from "../support/lone-deps.ts";
import { configOf } from "../support/run-config.ts";
import { useDatabase } from "../support/test-database.ts";

const database = useDatabase();
const SECRET = "w0rker/only+secret 1";
const IN_URL = encodeURIComponent(SECRET);

const settings = configOf({
  sandbox: { env: { GIVEN: SECRET }, setup: [`curl https://x/?k=${IN_URL}`] },
});

function worker() {
  const model: AgentDeps["model"] = { ask: () => expect.fail("No model is asked.") };
  const deps = loneDeps(database.store, { model, sanitizer: createSanitizer([SECRET]) });
  return createActivities(deps);
}

async function stored(id: string): Promise<string> {
  const { rows } = await database.store.db.execute(sql`
    select (select json_agg(s) from sessions s where id = ${id}) as session,
      (select json_agg(m) from stored_messages m where session_id = ${id}) as messages,
      (select json_agg(e) from events e where session_id = ${id}) as events`);
  return JSON.stringify(rows);
}

const open = (id: string, run: string, input: Record<string, unknown> = {}) =>
  attemptOf(id, run).run(async () => worker().openSession({ chain: run, ...input }));

it("masks what a client stored when a run opens the session, before anything reads it", async () => {
  const { db } = database.store;
  await createSession(database.store, {
    id: "mended",
    task: `Use ${SECRET}, also ${IN_URL}`,
    config: settings,
    instructions: `AGENTS.md says ${JSON.stringify(SECRET)}`,
    skills: [{ name: "deploy", description: `with ${SECRET}`, path: "skills/deploy/SKILL.md" }],
  });
  const before = await stored("mended");
  expect(before).toContain(SECRET);
  await open("mended", "run-1");
  const after = await stored("mended");
  expect(after).not.toContain(SECRET);
  expect(after).not.toContain(IN_URL);
  const session = await findSession(db, "mended");
  expect(session?.task).toBe(`Use ${MASK}, also ${MASK}`);
  expect(session?.system).toContain(`AGENTS.md says "${MASK}"`);
  expect(session?.config.sandbox.env).toEqual({ GIVEN: MASK });
});

it("leaves a session without secrets exactly as it is", async () => {
  await createSession(database.store, { id: "clean", task: "Say hello", config: configOf({}) });
  const rows = () =>
    database.store.db
      .select({ config: sql`config::text` })
      .from(sessions)
      .where(eq(sessions.id, "clean"));
  const [before] = await rows();
  await open("clean", "run-1");
  const [after] = await rows();
  expect(after?.config).toBe(before?.config);
});

it("masks a schedule's row, and the session that is made of it", async () => {
  const { db } = database.store;
  await createSchedule(db, { name: "nightly", task: `Use ${SECRET}`, config: settings, owner: undefined });
  await open("nightly-1", "run-1", { schedule: "nightly" });
  expect(JSON.stringify(await findSchedule(db, "nightly"))).not.toContain(SECRET);
  expect(await stored("nightly-1")).not.toContain(SECRET);
});

it("mends a waiting message that its sender stored and announced", async () => {
  const { db } = database.store;
  await createSession(database.store, { id: "told", task: "Say hello", config: configOf({}) });
  await open("told", "run-1");
  const message = {
    id: "m1",
    parts: [{ type: "text" as const, text: `try ${SECRET}` }],
    queuedAt: "2026-11-21T10:00:00.000Z",
  };
  const at = { sessionId: "told", epoch: 1, step: 0 };
  await db.transaction((tx) => enterGuidance(tx, at, [message], `try ${SECRET}`));
  expect(await stored("told")).toContain(SECRET);
  await attemptOf("told", "run-1").run(async () => worker().storeGuidance({ step: 0, items: [message] }));
  const after = await stored("told");
  expect(after).not.toContain(SECRET);
  expect(after).toContain(`try ${MASK}`);
});
