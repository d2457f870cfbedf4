import { readFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { beforeEach, expect, test } from "vitest";
import { birthOf, endProcess, freePort, isAlive, launch } from "../../../client/setup/processes.ts";
import { until } from "../../../temporal/patience.ts";
import { emptyFolder } from "../../support/empty-folder.ts";

let folder: string;
beforeEach(() => {
  folder = emptyFolder();
});

const sleeper = (script = "setInterval(() => {}, 1000)") =>
  launch({ command: process.execPath, args: ["-e", script], log: join(folder, "log") });

test("a launched process lives until it is ended", async () => {
  const mark = await sleeper();
  expect(await isAlive(mark)).toBe(true);
  expect(await endProcess(mark)).toBe(true);
  expect(await isAlive(mark)).toBe(false);
});

test("a process's output is in its log", async () => {
  const mark = await sleeper("console.log('here'); console.error('and there')");
  await until(async () => !(await isAlive(mark)), 5_000);
  expect(readFileSync(join(folder, "log"), "utf8")).toBe("here\nand there\n");
});

test("a process that has only our pid is never killed", async () => {
  const mark = await sleeper();
  expect(await endProcess({ pid: mark.pid, born: "1" })).toBe(false);
  expect(await isAlive(mark)).toBe(true);
  await endProcess(mark);
});

test("a process that ignores TERM is killed after the grace period", async () => {
  const mark = await sleeper(
    "process.on('SIGTERM', () => {}); console.log('up'); setInterval(() => {}, 1000)",
  );
  await until(() => readFileSync(join(folder, "log"), "utf8").includes("up"), 5_000);
  await endProcess(mark, { graceMs: 100 });
  expect(await isAlive(mark)).toBe(false);
});

test("a process that could not be recorded never runs", async () => {
  let pid = 0;
  const command = { command: process.execPath, args: ["-e", "console.log('ran')"], log: join(folder, "log") };
  const launched = launch(command, (mark) => {
    pid = mark.pid;
    throw new Error("no room");
  });
  await expect(launched).rejects.toThrow("no room");
  await until(async () => (await birthOf(pid)) === undefined, 5_000);
  expect(await birthOf(pid)).toBeUndefined();
  expect(readFileSync(join(folder, "log"), "utf8")).toBe("");
});

test("a process is recognised before and after it became its program", async () => {
  const recorded: object[] = [];
  const command = {
    command: process.execPath,
    args: ["-e", "setInterval(() => {}, 1000)"],
    log: join(folder, "log"),
  };
  const mark = await launch(command, (one) => recorded.push(one));
  expect(recorded).toEqual([mark]);
  expect(await isAlive(mark)).toBe(true);
  await endProcess(mark);
});

test("a missing command is an error, not a crash", async () => {
  await expect(launch({ command: join(folder, "none"), args: [], log: join(folder, "log") })).rejects.toThrow(
    "ENOENT",
  );
});

test("a wanted port is used if it is free, another if it is not", async () => {
  const free = await freePort();
  expect(await freePort(free)).toBe(free);
  const server = createServer();
  await new Promise<void>((resolve) => void server.listen(free, "127.0.0.1", resolve));
  try {
    expect(await freePort(free)).not.toBe(free);
  } finally {
    server.close();
  }
});
