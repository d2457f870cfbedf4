import { expect, test } from "vitest";
import { finished, longhaul, untilStatus } from "../support/commands/longhaul.ts";

test("goes back to before a step, conversation and files, and continues from there", async () => {
  const id = await finished("run: echo one >> log\nrun: echo two >> log\nsay: Done.");
  const { code, out, err } = await longhaul(["retry", id, "--from-step", "2"]);
  expect({ code, out }).toEqual({ code: 0, out: "Done.\n" });
  expect(err).toContain("before step 2");
  const status = await untilStatus(id, (session) => session.status === "completed");
  expect(status.epoch).toBe(2);
  const { out: patch } = await longhaul(["diff", id]);
  expect(patch.match(/^\+(one|two)$/gm)).toEqual(["+one", "+two"]);
});

test("--detach prints the id alone; a step that never ran is 2", async () => {
  const id = await finished("say: Done.");
  expect(await longhaul(["retry", id, "--detach"])).toMatchObject({ code: 0, out: `${id}\n` });
  expect((await longhaul(["retry", id, "--from-step", "9"])).code).toBe(2);
});
