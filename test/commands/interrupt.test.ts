import { expect, test } from "vitest";
import { eventually } from "../support/eventually.ts";
import { callRows } from "../support/stored.ts";
import {
  begin,
  finished,
  inThisProcess,
  longhaul,
  starting,
  untilStatus,
} from "../support/commands/longhaul.ts";

test("aborts the command in flight and continues with the message", async () => {
  const id = await begin("run: sleep 100\nsay: Never.");
  const watching = starting(["watch", id]);
  await inThisProcess(({ store }) =>
    eventually("the command runs", async () => (await callRows(store, id, "running")).length > 0, 60_000),
  );
  await eventually("it is shown", () => watching.err().includes("sleep 100"), 60_000);
  const { code, err } = await longhaul(["interrupt", id, "say: Something else."]);
  expect(code).toBe(0);
  expect(err).toContain(
    `${id} is interrupted and continues with your message. Kept: the output so far of bash`,
  );
  expect((await untilStatus(id, ({ status }) => status === "completed")).result).toBe("Something else.");
  expect(await watching.ended).toMatchObject({ code: 0, out: "Something else.\n" });
});

test("says what the session continues with", async () => {
  const [alone, guided] = await Promise.all([begin("run: sleep 100"), begin("run: sleep 100")]);
  for (const id of [alone, guided]) await untilStatus(id, ({ step }) => step === 1);
  await longhaul(["say", guided, "say: Tabs."]);
  const onItsOwn = (await longhaul(["interrupt", alone])).err;
  expect(onItsOwn).toContain("continues on its own: no message was waiting.");
  expect(onItsOwn).toMatch(/Say what to do instead: .* say .*\. To end it: .* cancel /);
  expect((await longhaul(["interrupt", guided])).err).toContain("continues with 1 waiting message.");
});

test("an ended session is 5, and a message that is too long is 2", async () => {
  const id = await finished("say: Done.");
  expect(await longhaul(["interrupt", id])).toMatchObject({ code: 5, out: "" });
  expect((await longhaul(["interrupt", id, "x".repeat(20_000)])).code).toBe(2);
});
