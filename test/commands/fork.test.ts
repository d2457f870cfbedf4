import { expect, test } from "vitest";
import { finished, longhaul, statusOf } from "../support/commands/longhaul.ts";

test("starts a session from an earlier point, with its files, and leaves the first unchanged", async () => {
  const id = await finished("run: echo one >> log\nrun: echo two >> log\nsay: Done.");
  const message = "run: echo three >> log\nsay: Forked.";
  const { code, out } = await longhaul([
    "fork",
    id,
    "--from-step",
    "2",
    "--id",
    `${id}-b`,
    "--message",
    message,
  ]);
  expect({ code, out }).toEqual({ code: 0, out: "Forked.\n" });
  expect((await longhaul(["diff", `${id}-b`])).out.match(/^\+(one|two|three)$/gm)).toEqual([
    "+one",
    "+three",
  ]);
  expect(await statusOf(id)).toMatchObject({ status: "completed", epoch: 1, result: "Done." });
});

test("a step that never ran is 2", async () => {
  const id = await finished("say: Done.");
  expect((await longhaul(["fork", id, "--from-step", "9", "--detach"])).code).toBe(2);
});
