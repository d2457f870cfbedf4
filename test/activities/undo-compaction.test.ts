import { expect, it } from "vitest";
import { buildView } from "../../activities/transcript/view.ts";
import { summaryText, work } from "../support/compacting.ts";
import { compactingSession } from "../support/compacting-session.ts";
import { useDatabase } from "../support/test-database.ts";

const database = useDatabase();

it("brings back the view before the newest round, keeps its event, and never gives its number again [case 30]", async () => {
  const one = await compactingSession(database, work(30), summaryText(), summaryText());
  const before = await one.view();
  await one.summarize(1);
  expect(await one.undo("first")).toMatchObject({ kind: "undone", round: 1, context: { estimated: true } });
  expect(await one.view()).toEqual(before);
  expect(await one.summarize(2)).toMatchObject({ kind: "compacted", round: 2 });
  expect((await one.rounds()).map(({ round, status }) => [round, status])).toEqual([
    [1, "undone"],
    [2, "compacted"],
  ]);
  expect(buildView(await one.view()).repairs).toEqual([]);
  expect((await one.view()).filter((row) => row.kind === "summary").map((row) => row.slot)).toEqual([
    "summary:2",
  ]);
});

it("takes back one round a request, also if it is asked twice, and goes further back with another", async () => {
  const one = await compactingSession(database, work(30), summaryText(), summaryText());
  const whole = await one.view();
  await one.summarize(1);
  const once = await one.view();
  const later = work(20);
  await one.add(later, 40);
  await one.summarize(2);
  await one.undo("a");
  expect(await one.undo("a")).toMatchObject({ kind: "undone", round: 2 });
  expect((await one.view()).slice(0, once.length)).toEqual(once);
  expect(await one.undo("b")).toMatchObject({ kind: "undone", round: 1 });
  expect((await one.view()).slice(0, whole.length)).toEqual(whole);
  expect(await one.view()).toHaveLength(whole.length + later.length);
  expect(await one.undo("c")).toMatchObject({ kind: "nothing" });
  expect((await one.events()).filter((type) => type === "context:compressed")).toHaveLength(4);
});

it("does not trust the bill of a request that was made with the summary", async () => {
  const one = await compactingSession(database, work(30), summaryText());
  await one.summarize(1);
  await one.billed(60, { input: 900, output: 20 });
  const { context } = await one.undo("now");
  expect(context.estimated).toBe(true);
  // The bill of 920 tokens was for the summary's view.
  expect(context.used).toBeGreaterThan(3 * 920);
});
