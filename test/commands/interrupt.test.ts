import { expect, test } from "vitest";
import { eventually } from "../support/eventually.ts";
import { begin, finished, longhaul, starting, untilStatus } from "../support/commands/longhaul.ts";

test("aborts the command in flight and continues with the message", async () => {
  const id = await begin("run: sleep 100\nsay: Never.");
  const watching = starting(["watch", id]);
  await eventually("the command runs", () => watching.err().includes("sleep 100"), 60_000);
  expect(await longhaul(["interrupt", id, "say: Something else."])).toMatchObject({ code: 0 });
  expect((await untilStatus(id, ({ status }) => status === "completed")).result).toBe("Something else.");
  expect(await watching.ended).toMatchObject({ code: 0, out: "Something else.\n" });
});

test("an ended session is 5, and a message that is too long is 2", async () => {
  const id = await finished("say: Done.");
  expect(await longhaul(["interrupt", id])).toMatchObject({ code: 5, out: "" });
  expect((await longhaul(["interrupt", id, "x".repeat(20_000)])).code).toBe(2);
});
