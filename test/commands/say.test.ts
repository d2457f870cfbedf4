import { execFile } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, inject, test } from "vitest";
import {
  begin,
  emptyFolder,
  finished,
  inThisProcess,
  longhaul,
  statusOf,
  untilRunning,
  untilStatus,
} from "../support/commands/longhaul.ts";
import { resultTexts } from "../support/stored.ts";

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

test("goes on, without any setting, in the sandbox of before with what was installed", async () => {
  const id = await finished("run: echo installed > ~/tool\nsay: One.");
  const { parked } = await statusOf(id);
  expect(parked?.bytes).toBeGreaterThan(0);
  const keptDays = (Date.parse(parked?.until ?? "") - Date.now()) / 86_400_000;
  expect(Math.round(keptDays * 10)).toBe(30);
  expect((await longhaul(["status", id])).out).toMatch(
    /^ *parked +on \S+, [\d.]+ [KM]?B, until [\d-]+ [\d:]+ UTC$/m,
  );
  expect((await longhaul(["say", id, "run: cat ~/tool\nsay: Two."])).code).toBe(0);
  await untilStatus(id, ({ status, result }) => status === "completed" && result === "Two.");
  const results = await inThisProcess(({ store }) => resultTexts(store, id));
  expect(results.at(-1)).toBe("installed");
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

test("a session keeps to models with tools, or without, and is unchanged if another is refused", async () => {
  const cwd = emptyFolder();
  const settings = (name: string, ...without: readonly string[]) => {
    const models = Object.fromEntries(without.map((model) => [model, { tools: "none" }]));
    writeFileSync(join(cwd, name), JSON.stringify({ models }));
    return ["--config", name];
  };
  const plainO3 = settings("o3.yaml", "openai/o3");
  const start = async (...flags: string[]) => {
    const { code, out, err } = await longhaul(["start", "say: First.", ...flags], { cwd });
    expect(code, err).toBe(0);
    const id = out.trim();
    const { status, error } = await untilStatus(
      id,
      ({ endedAt, workflowStatus }) => endedAt !== null && workflowStatus !== "RUNNING",
    );
    expect(status, JSON.stringify(error)).toBe("completed");
    return id;
  };
  const say = (id: string, model: string, config: readonly string[]) =>
    longhaul(["say", id, "say: Second.", "--model", model, "--id", "once", ...config], { cwd });
  const unchanged = async (id: string) => {
    const { status, step, model, queue, workflowStatus } = await statusOf(id);
    expect((await longhaul(["messages", id])).out).not.toContain("Second.");
    return { status, step, model, queue, workflowStatus };
  };

  const withTools = await start();
  const before = await unchanged(withTools);
  const refused = await say(withTools, "o3", plainO3);
  expect(refused).toMatchObject({ code: 2, out: "" });
  expect(refused.err).toMatch(
    /openai\/o3 is used without tools, and this session has tools; nothing was sent.*new session/,
  );
  expect(await unchanged(withTools)).toEqual(before);

  const without = await start("--model", "o3", ...plainO3);
  const plainBefore = await unchanged(without);
  const back = await say(without, "gpt-4o", plainO3);
  expect(back).toMatchObject({ code: 2, out: "" });
  expect(back.err).toMatch(/gpt-4o is used with tools, and this session has none; nothing was sent/);
  expect(await unchanged(without)).toEqual(plainBefore);

  // A refused order uses up no id. The same models, as their sessions' kind, are taken.
  const next = [
    [withTools, "o3", settings("none.yaml")],
    [without, "gpt-4o", settings("both.yaml", "openai/o3", "openai/gpt-4o")],
  ] as const;
  for (const [id, model, config] of next) {
    const said = await say(id, model, config);
    expect(said.code, said.err).toBe(0);
    expect(said.err).toContain(`continues with openai/${model}`);
    const { result, model: used } = await untilStatus(
      id,
      ({ status, step }) => status === "completed" && step === 2,
    );
    expect({ result, used }).toEqual({ result: "Second.", used: `openai/${model}` });
  }
}, 240_000);
