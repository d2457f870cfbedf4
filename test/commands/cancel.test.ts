import { expect, test } from "vitest";
import { eventually } from "../support/eventually.ts";
import { begin, finished, longhaul, starting, statusOf } from "../support/commands/longhaul.ts";

test("ends the run, waits for the clean-up and keeps the files; watchers end with 6", async () => {
  const id = await begin("run: echo kept > kept.txt\nrun: sleep 100\nsay: Never.");
  const watching = starting(["watch", id]);
  await eventually("the second command runs", () => watching.err().includes("sleep 100"), 60_000);
  const { code } = await longhaul(["cancel", id]);
  expect(code).toBe(0);
  expect((await watching.ended).code).toBe(6);
  expect((await statusOf(id)).status).toBe("cancelled");
  expect((await longhaul(["diff", id])).out).toContain("+kept");
});

test("an ended session is 5", async () => {
  const id = await finished("say: Done.");
  expect(await longhaul(["cancel", id])).toMatchObject({ code: 5, out: "" });
});
