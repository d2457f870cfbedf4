/** What model calls cost, counted with each bill. */
import { eq, sql } from "drizzle-orm";
import { expect, it } from "vitest";
import { deleteFamily, readFamily } from "../../activities/store/delete-session.ts";
import { recordCall, recordLostCalls } from "../../activities/store/model-calls.ts";
import { installation, modelCalls, sessions, spending } from "../../activities/store/schema/index.ts";
import { createSession } from "../../activities/store/sessions.ts";
import { readUsage, spendingDay } from "../../activities/store/spending.ts";
import { readInstallation } from "../../activities/store/installation.ts";
import { appendEvents } from "../../activities/store/events.ts";
import { onRepository } from "../support/remotes.ts";
import { configOf } from "../support/run-config.ts";
import { useDatabase } from "../support/test-database.ts";

const database = useDatabase(45);
const USAGE = { input: 1_000, cached: 400, output: 50, reasoning: 0 };

async function begin(id: string, owner: string | undefined, more: object = {}): Promise<string> {
  await createSession(database.store, { id, owner, task: "x", config: { ...configOf({}), ...more } });
  return id;
}

const call = (sessionId: string, costUsd: number | null, more: object = {}) => ({
  sessionId,
  epoch: 1,
  step: 1,
  attempt: 1,
  purpose: "step" as const,
  model: "openai/a",
  status: "kept" as const,
  estimatedInput: 900,
  estimatePure: true,
  usage: USAGE,
  costUsd,
  ...more,
});

const year = { since: "2000-01-01", before: "2100-01-01" };

it("counts each call once: for whom, which repository and model, also if it was wasted", async () => {
  const { db } = database.store;
  const repository = onRepository("https://Forge.example:8443/acme/app.git");
  await begin("one", "ann", { ...repository, tenant: "acme" });
  await createSession(database.store, {
    id: "one.s1c0",
    owner: "ann",
    task: "part",
    config: configOf({}),
    parent: { id: "one", call: "s1c0", epoch: 1, access: "read" },
  });
  await recordCall(db, call("one", 0.25));
  await recordCall(db, call("one", 0.5, { purpose: "summary" }));
  await recordCall(db, call("one.s1c0", 0.125, { status: "wasted" }));
  await recordCall(db, call("one", null, { step: 2, model: "local/b" }));
  const place = "forge.example:8443/acme/app";
  expect(await readUsage(db, ["person", "tenant", "repo", "model"], year)).toEqual([
    {
      of: ["ann", "acme", place, "openai/a"],
      sessions: 1,
      calls: 3,
      uncosted: 0,
      input: 3_000,
      cached: 1_200,
      output: 150,
      costUsd: 0.875,
    },
    {
      of: ["ann", "acme", place, "local/b"],
      sessions: 0,
      calls: 1,
      uncosted: 1,
      input: 1_000,
      cached: 400,
      output: 50,
      costUsd: 0,
    },
  ]);
  expect((await readUsage(db, ["purpose"], year)).map(({ of }) => of[0])).toEqual(["summary", "step"]);
});

it.each([
  ["git@forge.example:acme/app.git", "forge.example/acme/app"],
  ["git@forge.example:/acme/app.git", "forge.example/acme/app"],
  ["forge.example:2026/app.git", "forge.example/2026/app"],
  ["ssh://git@forge.example:22/acme/app", "forge.example/acme/app"],
  ["ssh://git@forge.example:2222/acme/app", "forge.example:2222/acme/app"],
  ["https://forge.example/acme/app/", "forge.example/acme/app"],
  ["https://Forge.Example.:443//Acme/App.git/", "forge.example/acme/app"],
  ["http://forge.example:80/acme/app", "forge.example/acme/app"],
  ["http://forge.example:443/acme/app", "forge.example:443/acme/app"],
  ["ssh://git@ssh.github.com:443/acme/app.git", "github.com/acme/app"],
  ["file:///srv/git/app.git", "/srv/git/app"],
])("a repository is known by host and path: %s", async (address, name) => {
  const { rows } = await database.store.db.execute(sql`select longhaul_repository(${address}) as name`);
  expect(rows).toEqual([{ name }]);
});

it("keeps the sums of sessions that are deleted", async () => {
  const { db } = database.store;
  await begin("gone", "bob");
  await recordCall(db, call("gone", 2));
  await db
    .update(sessions)
    .set({ status: "completed", endedAt: sql`now()` })
    .where(eq(sessions.id, "gone"));
  await deleteFamily(db, await readFamily(db, "gone"), undefined);
  expect(await db.select().from(modelCalls).where(eq(modelCalls.sessionId, "gone"))).toEqual([]);
  const rows = await readUsage(db, ["person"], year);
  expect(rows.find(({ of }) => of[0] === "bob")).toMatchObject({ calls: 1, costUsd: 2 });
});

it("counts a request that was lost with its worker by its estimate, once", async () => {
  const { db } = database.store;
  await begin("lost", "cy");
  const data = { estimatedInput: 2_000, estimated: true, triggerTokens: 1, limit: 1, window: 1 };
  await appendEvents(db, "lost", 1, [{ type: "step:started", step: 1, attempt: 1, data }]);
  for (const _ of [1, 2]) await recordLostCalls(db, "lost", [{ model: "openai/a", usdPerToken: 0.001 }]);
  const rows = await readUsage(db, ["person"], year);
  expect(rows.find(({ of }) => of[0] === "cy")).toMatchObject({ calls: 1, costUsd: 2 });
});

it("adds up what forty sessions are billed at the same moment", async () => {
  const { db } = database.store;
  const ids = await Promise.all(Array.from({ length: 40 }, (_, index) => begin(`many-${index}`, "dee")));
  await Promise.all(ids.map((id) => recordCall(db, call(id, 0.25))));
  const rows = await readUsage(db, ["person"], year);
  expect(rows.find(({ of }) => of[0] === "dee")).toMatchObject({ sessions: 40, calls: 40, costUsd: 10 });
});

it("books a call on the day on which it was sent, by the installation's zone", async () => {
  const { db } = database.store;
  await begin("late", "eve");
  await readInstallation(db);
  const days = async () =>
    (await db.select({ day: spending.day }).from(spending).where(eq(spending.owner, "eve"))).map(
      ({ day }) => day,
    );
  // 22:30 in Berlin in summer, 20:30 by UTC, and sent 40 minutes before.
  const at = async (zone: string, createdAt: string, durationMs: number) => {
    await db.update(installation).set({ zone });
    await db.delete(spending).where(eq(spending.owner, "eve"));
    const { usage: _, ...row } = call("late", 1);
    await db.insert(modelCalls).values({ ...row, durationMs, createdAt: new Date(createdAt) });
    return days();
  };
  expect(await at("UTC", "2026-07-31T22:30:00Z", 0)).toEqual(["2026-07-31"]);
  expect(await at("Europe/Berlin", "2026-07-31T22:30:00Z", 0)).toEqual(["2026-08-01"]);
  expect(await at("Europe/Berlin", "2026-07-31T22:30:00Z", 40 * 60_000)).toEqual(["2026-07-31"]);
  expect(await at("Europe/Berlin", "2026-10-25T00:30:00Z", 0)).toEqual(["2026-10-25"]);
  expect(await at("Europe/Berlin", "2026-10-25T22:59:00Z", 0)).toEqual(["2026-10-25"]);
  expect(await spendingDay(db)).toMatch(/^\d{4}-\d\d-\d\d$/);
});

it("lets no session's bill wait for another's that is not committed yet", async () => {
  const { db } = database.store;
  const [slow, quick] = await Promise.all([begin("slow", "fay"), begin("quick", "fay")]);
  await db.transaction(async (tx) => {
    await recordCall(tx, call(slow, 1));
    await recordCall(db, call(quick, 2));
  });
  const rows = await readUsage(db, ["person"], year);
  expect(rows.find(({ of }) => of[0] === "fay")).toMatchObject({ sessions: 2, calls: 2, costUsd: 3 });
});
