import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { expect, inject, test } from "vitest";
import {
  begin,
  emptyFolder,
  finished,
  longhaul,
  untilRunning,
  untilStatus,
} from "../support/commands/longhaul.ts";

test("queues a message with its position, counts an id once, and delivers all in order", async () => {
  const id = await begin("run: sleep 100\nsay: Not heard.");
  await untilRunning(id);
  const first = await longhaul(["say", id, "run: echo one", "--id", "m1"]);
  expect(first).toMatchObject({ code: 0, out: "queued, position 1\n" });
  const again = await longhaul(["say", id, "run: echo one", "--id", "m1"]);
  expect(again.out).toContain("already sent");
  const second = await longhaul(["say", id, "--json", "-"], { input: "say: Both heard.\n" });
  expect(JSON.parse(second.out)).toMatchObject({ id, queued: true, position: 2 });
  await longhaul(["interrupt", id]);
  const { result, queue } = await untilStatus(id, ({ status }) => status === "completed");
  expect({ result, queue }).toEqual({ result: "Both heard.", queue: [] });
});

test("shows waiting messages, and takes back one that the agent has not read", async () => {
  const id = await begin("run: sleep 100\nsay: Not heard.");
  await untilRunning(id);
  for (const name of ["first", "second"]) await longhaul(["say", id, `run: echo ${name}`, "--id", name]);
  const shown = await longhaul(["queue", id]);
  expect(shown.out).toMatch(/^1\. first .* run: echo first\n2\. second .* run: echo second\n$/);
  expect(await longhaul(["unsay", id, "1"])).toMatchObject({ code: 0, out: "" });
  const { queue } = JSON.parse((await longhaul(["queue", id, "--json"])).out) as { queue: { id: string }[] };
  expect(queue.map((message) => message.id)).toEqual(["second"]);
  expect((await longhaul(["unsay", id, "first"])).code).toBe(5);
  await longhaul(["interrupt", id, "say: Only the second."]);
  await untilStatus(id, ({ status }) => status === "completed");
  const said = (await longhaul(["messages", id])).out;
  expect(said).toContain("echo second");
  expect(said).not.toContain("echo first");
  expect((await longhaul(["unsay", id, "second"])).code).toBe(5);
});

test("resumes an ended session", async () => {
  const id = await finished("say: First.");
  const { code, err } = await longhaul(["say", id, "say: Second."]);
  expect(code).toBe(0);
  expect(
    (await untilStatus(id, (session) => session.status === "completed" && session.step === 2)).result,
  ).toBe("Second.");
  // The hint works literally, also outside the project's folder.
  const hint = /Watch it: (.*)$/m.exec(err)?.[1] ?? "";
  const { stdout } = await promisify(execFile)("bash", ["-c", hint], {
    cwd: emptyFolder(),
    env: { PATH: process.env["PATH"], ...inject("commandsEnvironment") },
  });
  expect(stdout).toBe("Second.\n");
});

test("resume continues an ended session without a message, and refers to say for a running one", async () => {
  const id = await finished("say: First.");
  expect((await longhaul(["resume", id.slice(0, -1)])).code).toBe(0);
  await untilStatus(id, (session) => session.status === "completed" && session.step === 2);
  const running = await begin("run: sleep 100\nsay: Not heard.");
  const refused = await longhaul(["resume", running]);
  expect(refused).toMatchObject({ code: 5, out: "" });
  expect(refused.err).toContain(`say ${running}`);
  expect((await longhaul(["stop", running])).code).toBe(0);
});

test("an empty message and a wrong id of a message are 2", async () => {
  expect((await longhaul(["say", "no-such-session", "   "])).code).toBe(2);
  expect((await longhaul(["say", "no-such-session", "--id", "a b", "hello"])).code).toBe(2);
});
