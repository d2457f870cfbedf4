import { expect, it } from "vitest";
import { buildView } from "../../activities/transcript/view.ts";
import { summaryText, work } from "../support/compacting.ts";
import { compactingSession } from "../support/compacting-session.ts";
import { useDatabase } from "../support/test-database.ts";

const database = useDatabase();

it(
  "brings back the view before the newest round, whose event and number stay used",
  { tags: ["case-30"] },
  async () => {
    const session = await compactingSession(database, work(30), summaryText(), summaryText());
    const before = await session.view();
    await session.summarize(1);
    expect(await session.undo("first")).toMatchObject({
      kind: "undone",
      round: 1,
      context: { estimated: true },
    });
    expect(await session.view()).toEqual(before);
    expect(await session.summarize(2)).toMatchObject({ kind: "compacted", round: 2 });
    expect((await session.rounds()).map(({ round, status }) => [round, status])).toEqual([
      [1, "undone"],
      [2, "compacted"],
    ]);
    expect(buildView(await session.view()).repairs).toEqual([]);
    expect((await session.view()).filter((row) => row.kind === "summary").map((row) => row.slot)).toEqual([
      "summary:2",
    ]);
  },
);

it("takes back one round a request, also if asked twice, and goes further back with another", async () => {
  const session = await compactingSession(database, work(30), summaryText(), summaryText());
  const whole = await session.view();
  await session.summarize(1);
  const once = await session.view();
  const later = work(20);
  await session.add(later, 40);
  await session.summarize(2);
  await session.undo("a");
  expect(await session.undo("a")).toMatchObject({ kind: "undone", round: 2 });
  expect((await session.view()).slice(0, once.length)).toEqual(once);
  expect(await session.undo("b")).toMatchObject({ kind: "undone", round: 1 });
  expect((await session.view()).slice(0, whole.length)).toEqual(whole);
  expect(await session.view()).toHaveLength(whole.length + later.length);
  expect(await session.undo("c")).toMatchObject({ kind: "nothing" });
  expect((await session.events()).filter((type) => type === "context:compressed")).toHaveLength(4);
});

it("does not trust the bill of a request that was made with the summary", async () => {
  const session = await compactingSession(database, work(30), summaryText());
  await session.summarize(1);
  await session.billed(60, { input: 900, output: 20 });
  const { context } = await session.undo("now");
  expect(context.estimated).toBe(true);
  // The bill of 920 tokens was for the summary's view.
  expect(context.used).toBeGreaterThan(3 * 920);
});
