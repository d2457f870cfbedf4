import { expect, test } from "vitest";
import {
  begin,
  finished,
  longhaul,
  statusOf,
  untilRunning,
  untilStatus,
} from "../support/commands/longhaul.ts";

const FILL = Array.from({ length: 12 }, (_, at) => `run: seq ${at * 1_000} ${at * 1_000 + 900}`).join("\n");

test("compacts a running session at its next step, and undoes the compaction on request", async () => {
  const id = await begin(`${FILL}\nrun: sleep 100\nsay: Done.`);
  await untilRunning(id, 13);
  const { code, out, err } = await longhaul(["compact", id, "keep", "the numbers", "--json"]);
  expect(code).toBe(0);
  expect(JSON.parse(out)).toEqual({ id, requested: true });
  expect(err).toContain("next step");
  await longhaul(["interrupt", id]);
  await untilStatus(id, ({ compactionRounds }) => compactionRounds === 1);
  expect((await longhaul(["cancel", id])).code).toBe(0);
  const undone = await longhaul(["undo-compaction", id, "--json"]);
  expect(undone.code).toBe(0);
  expect(undone.err).toContain("in view again");
  expect(JSON.parse(undone.out)).toMatchObject({ id, undone: true, round: 1 });
  expect((await statusOf(id)).compactionRounds).toBe(0);
});

test("an ended session cannot be compacted, and without a compaction there is nothing to undo: 5", async () => {
  const id = await finished("say: Done.");
  expect(await longhaul(["compact", id])).toMatchObject({ code: 5, out: "" });
  expect(await longhaul(["undo-compaction", id])).toMatchObject({ code: 5, out: "" });
  expect((await longhaul(["compact", id, "x".repeat(3_000)])).code).toBe(2);
});
