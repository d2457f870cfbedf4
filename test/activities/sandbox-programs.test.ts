/** Programs of ours: run by a child of the supervisor, which starts no interpreter for them. */
import { expect, test } from "vitest";
import { readEnd, program, runOwn } from "../../activities/sandbox/own-command.ts";
import type { CommandState, Sandbox } from "../../activities/sandbox/sandbox.ts";
import { pythonProgram } from "../support/python-program.ts";
import { bash, newId, useTestSandboxes, waitUntil } from "../support/test-sandboxes.ts";

const sandboxes = useTestSandboxes();
const TIMEOUT_MS = 30_000;

const run = (sandbox: Sandbox, source: string, timeoutMs = TIMEOUT_MS): Promise<CommandState> =>
  runOwn(sandbox, { id: `p-${newId()}`, ...program("LONGHAUL_TEST", pythonProgram(source)), timeoutMs });

const outOf = async (sandbox: Sandbox, source: string) => readEnd(sandbox, await run(sandbox, source));

test("a program has its output, exit code, errors and environment, as if run directly", async () => {
  const sandbox = await sandboxes.host.open(sandboxes.spec());
  const facts =
    "import os,sys;print(os.getuid(),os.getcwd(),sorted(os.listdir('/proc/self/fd')),os.environ['LC_ALL'])";
  expect(await outOf(sandbox, facts)).toEqual({
    out: "1000 /workspace ['0', '1', '2', '3'] C.UTF-8\n",
  });
  expect(
    await outOf(sandbox, "import os;print([name for name in os.environ if 'LONGHAUL_TEST' in name])"),
  ).toEqual({
    out: "[]\n",
  });
  expect(await outOf(sandbox, "import sys;print('why',file=sys.stderr);sys.exit(7)")).toEqual({
    how: "exit code 7",
    message: "why\n",
  });
  expect(await outOf(sandbox, "[][1]")).toMatchObject({
    how: "exit code 1",
    message: expect.stringContaining("IndexError: list index out of range") as string,
  });
  expect(
    await outOf(sandbox, "import subprocess;print(subprocess.check_output(['id','-u']).decode())"),
  ).toEqual({
    out: "1000\n\n",
  });
});

test("what one program defines is unknown to the next, and to the supervisor", async () => {
  const sandbox = await sandboxes.host.open(sandboxes.spec());
  await outOf(sandbox, "import os;Supervisor = None;os.left = True");
  expect(await outOf(sandbox, "import os;print('Supervisor' in globals(),hasattr(os,'left'))")).toEqual({
    out: "False False\n",
  });
});

test("tools cannot read the memory of a program, which has parts of the supervisor's", async () => {
  const sandbox = await sandboxes.host.open(sandboxes.spec());
  const id = `p-${newId()}`;
  const source = "import os,time;print(os.getpid(),flush=True);time.sleep(60)";
  const began = await sandbox.start({
    id,
    ...program("LONGHAUL_TEST", pythonProgram(source)),
    timeoutMs: 60_000,
  });
  if (began.kind !== "running") throw new Error(began.kind);
  await waitUntil(async () => (await sandbox.state(id))?.outBytes !== 0, "the program to begin");
  const reads = await bash(
    sandbox,
    `for what in mem environ maps fd/0 cwd; do (cat /proc/${began.pid}/$what || ls /proc/${began.pid}/$what/) 2>&1 | grep -c "Permission denied"; done`,
  );
  expect(
    reads.out
      .trim()
      .split("\n")
      .every((count) => Number(count) > 0),
  ).toBe(true);
  expect(await sandbox.kill(id)).toMatchObject({ kind: "killed", by: "request", signal: "SIGTERM" });
  expect((await bash(sandbox, `kill -0 ${began.pid} 2>&1`)).state).toMatchObject({ exitCode: 1 });
});

test("a program that outlives its time is ended, with the processes that it started", async () => {
  const sandbox = await sandboxes.host.open(sandboxes.spec());
  const source =
    "import signal,subprocess,time;signal.signal(signal.SIGTERM,signal.SIG_IGN);subprocess.Popen(['setsid','sleep','1000']);time.sleep(1000)";
  expect(await run(sandbox, source, 300)).toMatchObject({ kind: "killed", by: "timeout", signal: "SIGKILL" });
  expect((await bash(sandbox, "pgrep -f 'sleep 1000' -c")).out.trim()).toBe("0");
});

test("while a program runs, all files can be counted", async () => {
  const sandbox = await sandboxes.host.open({
    ...sandboxes.spec(),
    disk: { bytes: 64 << 20, freeBytes: 1 << 20 },
  });
  const id = `p-${newId()}`;
  await sandbox.start({
    id,
    ...program("LONGHAUL_TEST", pythonProgram("import time;time.sleep(60)")),
    timeoutMs: 60_000,
  });
  // Exceeds the limit, so the files are counted.
  const { state } = await bash(sandbox, "for i in 1 2 3; do head -c 40M /dev/zero > $i; done; sleep 30");
  expect(state).toMatchObject({ kind: "killed", by: "disk", disk: { unseenBytes: 0 } });
});
