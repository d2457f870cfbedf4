import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, inject, onTestFinished, test } from "vitest";
import { eventually } from "../support/eventually.ts";
import { cloneProject } from "../support/clone-project.ts";
import { temporal } from "../support/commands/longhaul.ts";
import { clientArgs } from "../support/program.ts";
import { openStore } from "../../activities/store/db.ts";
import { createSession } from "../../activities/store/sessions.ts";
import { ownPostgresUrl } from "../../client/setup/postgres.ts";
import { directConfig } from "../support/direct-agent.ts";
import { birthOf } from "../../client/setup/processes.ts";
import { readState } from "../../client/setup/state.ts";
import { listRuns } from "../../temporal/runs.ts";
import { temporalClient } from "../../temporal/temporal-client.ts";

/** Its own clone: `up` and `down` keep state in the project's folder. What a failed test leaves there is ended. */
function clone(): string {
  const folder = cloneProject();
  // Before the folder goes: a worker that has lost its files would take other tests' work.
  onTestFinished(async () => {
    for (const { pid, born } of Object.values(stateOf(folder)))
      if ((await birthOf(pid)) === born) process.kill(pid, "SIGKILL");
  });
  return folder;
}

/** The clone's recorded state. */
function stateOf(folder: string) {
  return readState(join(folder, ".longhaul")).services;
}

function start(folder: string, words: readonly string[], own: Readonly<Record<string, string>> = {}) {
  let err = "";
  const { OPENAI_API_KEY: key, OPENAI_BASE_URL: url, ...rest } = inject("commandsEnvironment");
  const child = spawn(process.execPath, clientArgs(words, folder), {
    cwd: folder,
    env: { PATH: process.env["PATH"], ...rest, OPENAI_API_KEY: key, OPENAI_BASE_URL: url, ...own },
    stdio: ["ignore", "pipe", "pipe"],
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => (err += text));
  child.stdout.setEncoding("utf8").on("data", (text: string) => (err += text));
  onTestFinished(() => void child.kill("SIGKILL"));
  const ended = once(child, "close").then(() => ({ code: child.exitCode, err }));
  return { child, err: () => err, ended };
}

test("up shows its worker's log until Ctrl-C ends it; down then says that nothing runs", async () => {
  const folder = clone();
  // On its own queue: the other tests' sessions are for the worker that stays.
  const own = { LONGHAUL_TASK_QUEUE: `up-${process.pid}` };
  const up = start(folder, ["up"], own);
  await eventually("it is up", () => up.err().includes("Everything is running"), 110_000);
  const worker = stateOf(folder).worker;
  up.child.kill("SIGINT");
  const { code, err } = await up.ended;
  expect({ code, stack: /^ {4}at /m.test(err), raw: err.includes('{"level"') }).toEqual({
    code: 0,
    stack: false,
    raw: false,
  });
  expect(err).toContain("Stopped: worker.");
  expect(await birthOf(worker?.pid ?? 0)).toBeUndefined();
  const down = await start(folder, ["down"], own).ended;
  expect(down.code).toBe(0);
  expect(down.err).toContain("Nothing started by longhaul was running.");
});

/** A session with OpenAI in the clone's own database, as a worker left it. */
async function leaveOpen(folder: string, id: string): Promise<void> {
  const store = openStore({ url: ownPostgresUrl(join(folder, ".longhaul")) ?? "", maxConnections: 1 });
  try {
    const provider = { name: "openai", baseUrlEnv: "OPENAI_BASE_URL", keyEnv: "OPENAI_API_KEY" };
    await createSession(store, { id, task: "Go.", config: directConfig({ provider }) });
  } finally {
    await store.close();
  }
}

test("running services serve the next command, which starts or restarts what it needs", async () => {
  const folder = clone();
  // With its own database, so on its own queue.
  const setUp = { LONGHAUL_NO_SETUP: "", DATABASE_URL: "", LONGHAUL_TASK_QUEUE: `own-${process.pid}` };
  expect((await start(folder, ["up", "--detach"], setUp).ended).code).toBe(0);
  const first = stateOf(folder).worker;
  expect((await start(folder, ["up", "--detach"], setUp).ended).code).toBe(0);
  expect(stateOf(folder).worker?.pid).toBe(first?.pid);

  const other = { ...setUp, OPENAI_API_KEY: "sk-another" };
  expect((await start(folder, ["doctor"], other).ended).err).toMatch(/!\s+Worker .*OPENAI_API_KEY/);
  const lacking = await start(folder, ["cancel", "no-such-session"], { ...setUp, OPENAI_API_KEY: "" }).ended;
  expect(lacking.code).toBe(5);
  expect(stateOf(folder).worker?.pid).toBe(first?.pid);
  const renewing = await start(folder, ["cancel", "no-such-session"], other).ended;
  expect(renewing.code).toBe(5);
  expect(renewing.err).toContain("OPENAI_API_KEY changed");
  const second = stateOf(folder).worker;
  expect(second?.pid).not.toBe(first?.pid);
  await eventually(
    "the first worker is gone",
    async () => (await birthOf(first?.pid ?? 0)) === undefined,
    30_000,
  );
  expect((await start(folder, ["down"], setUp).ended).err).toContain("Stopped: worker, postgres.");
  expect(await birthOf(second?.pid ?? 0)).toBeUndefined();

  const list = await start(folder, ["list"], setUp).ended;
  expect({ code: list.code, err: list.err }).toEqual({
    code: 0,
    err: expect.stringContaining("Postgres runs at"),
  });
  expect(Object.keys(stateOf(folder))).toEqual(["postgres"]);

  await leaveOpen(folder, "left-open");
  const keyless = { ...setUp, OPENAI_API_KEY: "", OPENAI_BASE_URL: "" };
  const warning =
    "A worker started from this shell would lack OPENAI_API_KEY, which left-open needs; none was started";
  const another = await start(folder, ["start", "--model", "ollama/any", "another task"], keyless).ended;
  expect(another).toEqual({ code: 4, err: expect.stringContaining(warning) });
  expect(stateOf(folder).worker).toBeUndefined();
  expect((await start(folder, ["down"], setUp).ended).err).toContain("postgres.");
}, 240_000);

test("down lists unfinished tasks, and keeps a Temporal in use elsewhere, except with --all", async () => {
  const folder = clone();
  // A process in place of the server that this clone started.
  const server = spawn("sleep", ["600"], { stdio: "ignore" });
  onTestFinished(() => void server.kill("SIGKILL"));
  const pid = server.pid ?? 0;
  const entry = { pid, born: (await birthOf(pid)) ?? "", address: "", log: "" };
  mkdirSync(join(folder, ".longhaul"));
  writeFileSync(
    join(folder, ".longhaul", "services.json"),
    JSON.stringify({ services: { temporal: entry }, found: {} }),
  );
  const client = await temporal();
  const queues = { mine: `mine-${pid}`, theirs: `theirs-${pid}` };
  // What the other installation's run carries is encrypted with its own key.
  const key = { id: "theirs", key: randomBytes(32) };
  const clients = {
    mine: client,
    theirs: temporalClient({ connection: client.connection, namespace: "default" }, [key]),
  };
  for (const [id, client] of Object.entries(clients)) {
    const handle = await client.workflow.start("codingAgent", {
      workflowId: `${id}-${pid}`,
      taskQueue: `${id}-${pid}`,
      memo: { name: id },
    });
    onTestFinished(() => void handle.terminate("the test is over").catch(() => undefined));
  }
  const own = { LONGHAUL_TASK_QUEUE: queues.mine };
  await eventually("both are listed", async () => {
    let count = 0;
    for await (const run of listRuns(client, "running"))
      if (Object.values(queues).includes(run.taskQueue)) count += 1;
    return count === 2;
  });
  const first = await start(folder, ["down"], own).ended;
  expect(first.err).toContain(`Not finished: mine-${pid}.`);
  expect(first.err).toContain(`${queues.theirs} (open tasks: 1)`);
  expect(first.err).toContain("Temporal stays up");
  expect(await birthOf(pid)).toBe(entry.born);
  const second = await start(folder, ["down", "--all"], own).ended;
  expect(second.err).toContain("Stopped: temporal.");
  expect(await birthOf(pid)).toBeUndefined();
});
