import { beforeAll, expect, test } from "vitest";
import type { Sandbox } from "../../activities/sandbox/sandbox.ts";
import { bash, useTestSandboxes, newId, type TestSandboxes, waitUntil } from "../support/test-sandboxes.ts";

const sandboxes = useTestSandboxes();
let sandbox: Sandbox;
const spec = (): ReturnType<TestSandboxes["spec"]> => sandboxes.spec();
let opened: ReturnType<TestSandboxes["spec"]>;
beforeAll(async () => {
  opened = spec();
  sandbox = await sandboxes.host.open(opened);
});

const MIB = 1_048_576;

test("a command's exit code, output and errors are reported separately", async () => {
  const { state, out, err } = await bash(sandbox, "echo to out; echo to err >&2; exit 3");
  expect(state).toMatchObject({ kind: "exited", exitCode: 3, outBytes: 7, errBytes: 7 });
  expect([out, err]).toEqual(["to out\n", "to err\n"]);
});

test("a command started twice under one id runs once", async () => {
  const id = newId();
  const argv = ["bash", "-c", "echo ran >> once.txt; echo out"];
  const [first, second] = await Promise.all([sandbox.run({ id, argv }), sandbox.run({ id, argv })]);
  const third = await sandbox.start({ id, argv: ["bash", "-c", "echo other >> once.txt"] });
  expect([second, third]).toEqual([first, first]);
  expect((await bash(sandbox, "cat once.txt")).out).toBe("ran\n");
});

test("merged output keeps the order in which it was written", async () => {
  const id = newId();
  const script = "for i in 1 2 3; do echo out$i; echo err$i >&2; done";
  const state = await sandbox.run({ id, argv: ["bash", "-c", script], mergeOutput: true });
  expect(state).toMatchObject({ errBytes: 0 });
  expect(Buffer.from(await sandbox.read(id, "out", 0, 100)).toString()).toBe(
    "out1\nerr1\nout2\nerr2\nout3\nerr3\n",
  );
});

test("five megabytes of standard input arrive unchanged, with every byte value", async () => {
  const id = newId();
  const stdin = Buffer.alloc(5 * MIB, 0).map((_, at) => (at * 7) % 256);
  const state = await sandbox.run({
    id,
    argv: ["bash", "-c", "tee in.bin | wc -c; sha256sum in.bin"],
    stdin,
  });
  expect(state).toMatchObject({ kind: "exited", exitCode: 0 });
  const said = Buffer.from(await sandbox.read(id, "out", 0, 200)).toString();
  const { createHash } = await import("node:crypto");
  expect(said).toBe(`${stdin.length}\n${createHash("sha256").update(stdin).digest("hex")}  in.bin\n`);
});

test("a command reaches the end of its input even if other commands end at the same time", async () => {
  const id = newId();
  const script = "until [ -e may-read ]; do sleep 0.05; done; wc -c";
  await sandbox.start({ id, argv: ["bash", "-c", script], stdin: Buffer.alloc(MIB) });
  // Its child is forked while the first command's input is open.
  await bash(sandbox, "(sleep 0.5; touch may-read) >/dev/null 2>&1 &");
  expect(await sandbox.wait(id, { timeoutMs: 20_000 })).toMatchObject({ kind: "exited", exitCode: 0 });
  expect(Buffer.from(await sandbox.read(id, "out", 0, 100)).toString()).toBe(`${MIB}\n`);
});

test("a command has its own input, output and errors open, and no other descriptors", async () => {
  // The fourth is the listed folder.
  expect((await bash(sandbox, "ls /proc/self/fd")).out).toBe("0\n1\n2\n3\n");
});

test("NUL and bytes that are not UTF-8 are returned as they were written", { tags: ["R25"] }, async () => {
  const id = newId();
  await sandbox.run({ id, argv: ["printf", String.raw`\377\376a\000b\303`] });
  expect([...(await sandbox.read(id, "out", 0, 100))]).toEqual([0xff, 0xfe, 0x61, 0, 0x62, 0xc3]);
});

test(
  "a flood's beginning and last mebibyte are kept, the rest is counted, and memory stays flat",
  { tags: ["R26"] },
  async () => {
    const id = newId();
    const before = process.memoryUsage().rss;
    const script = "head -c 20000000 /dev/zero | tr '\\0' x; echo; echo the end";
    const reports: number[] = [];
    const command = { id, argv: ["bash", "-c", script], maxOutputBytes: 1000 };
    const state = await sandbox.run(command, { onOutput: (bytes) => reports.push(bytes) });
    expect(state).toMatchObject({ kind: "exited", outBytes: 20_000_009, outKept: 1000 + MIB });
    expect(Buffer.from(await sandbox.read(id, "out", 0, 1000)).toString()).toBe("x".repeat(1000));
    const tail = Buffer.from(await sandbox.read(id, "out", 1000, MIB)).toString();
    expect(tail.length).toBe(MIB);
    expect(tail.endsWith("xxx\nthe end\n")).toBe(true);
    expect(tail.slice(0, 100)).toBe("x".repeat(100));
    // The first bytes and the last are reported: at most four times a second.
    expect(reports.length).toBeLessThanOrEqual(
      Math.ceil((state.kind === "exited" ? state.durationMs : 0) / 250) + 1,
    );
    expect(process.memoryUsage().rss - before).toBeLessThan(64 * MIB);
  },
);

test(
  "an endless flood is ended by its timeout, which the sandbox itself enforces",
  { tags: ["R26"] },
  async () => {
    const id = newId();
    const state = await sandbox.run({ id, argv: ["yes"], timeoutMs: 1000, maxOutputBytes: 1000 });
    expect(state).toMatchObject({ kind: "killed", by: "timeout", outKept: 1000 + MIB });
    expect(state.outBytes).toBeGreaterThan(10 * MIB);
  },
);

test("output can be read while the command runs, and waiting can end before the command does", async () => {
  const id = newId();
  await sandbox.start({ id, argv: ["bash", "-c", "echo early; sleep 300"] });
  await waitUntil(async () => ((await sandbox.state(id))?.outBytes ?? 0) > 0, "it has printed");
  expect(Buffer.from(await sandbox.read(id, "out", 0, 100)).toString()).toBe("early\n");
  expect(await sandbox.wait(id, { timeoutMs: 30 })).toMatchObject({ kind: "running" });
  const abort = new AbortController();
  const waiting = sandbox.wait(id, { signal: abort.signal });
  abort.abort(new Error("enough"));
  await expect(waiting).rejects.toThrow("enough");
  expect(await sandbox.state(id)).toMatchObject({ kind: "running" });
  await sandbox.kill(id, 0);
});

test("a shell that ends does not wait for its background child, which continues", async () => {
  const { state, out } = await bash(sandbox, "sleep 300 & echo $!; disown");
  expect(state).toMatchObject({ kind: "exited", exitCode: 0 });
  expect(state.kind === "exited" && state.durationMs).toBeLessThan(2000);
  expect((await bash(sandbox, `kill -0 ${out.trim()} && echo lives`)).out).toBe("lives\n");
});

test("a child that outlives its command can still write, and its result does not change", async () => {
  const script = "(sleep 0.5; echo late; echo still here > late.txt) & echo first";
  const { state } = await bash(sandbox, script);
  await waitUntil(async () => (await sandbox.files.stat("late.txt")).ok, "the child went on after writing");
  expect(state.outBytes).toBe(6);
  const [same] = (await sandbox.list()).filter(({ id }) => id === state.id);
  expect(same).toEqual(state);
});

test("a command that cannot be started is refused with the reason", async () => {
  const refused = async (argv: string[], cwd?: string): Promise<unknown> =>
    await sandbox.run({ id: newId(), argv, cwd });
  expect(await refused(["no-such-program"])).toMatchObject({
    kind: "refused",
    reason: /no-such-program: No such file/,
  });
  expect(await refused(["true"], "no/folder")).toMatchObject({
    kind: "refused",
    reason: /no\/folder: No such file/,
  });
  expect(await refused(["true"], "../tmp")).toMatchObject({ kind: "refused", reason: /outside \/workspace/ });
  expect(await refused(["/etc/passwd"])).toMatchObject({ kind: "refused", reason: /Permission denied/ });
});

test("a command that was ended by a signal reports which", async () => {
  const { state } = await bash(sandbox, "kill -SEGV $$");
  expect(state).toMatchObject({ kind: "killed", by: "signal", signal: "SIGSEGV" });
});

test("an id that was never started has no state, and waiting for it fails", async () => {
  expect(await sandbox.state("never")).toBeUndefined();
  await expect(sandbox.wait("never")).rejects.toThrow(/ever started under the id 'never'/);
});

test(
  "the environment is fixed: it has what a command asks for, and nothing of the worker's",
  { tags: ["R51"] },
  async () => {
    process.env["CANARY_KEY"] = "sk-canary-3141";
    const id = newId();
    await sandbox.run({ id, argv: ["env"], env: { EXTRA: "yes" } });
    const said = Buffer.from(await sandbox.read(id, "out", 0, 10_000)).toString();
    expect(said).toContain("HOME=/home/agent\n");
    expect(said).toContain(`LONGHAUL_CALL=${id}\n`);
    expect(said).toContain("EXTRA=yes\n");
    expect(said).not.toMatch(/sk-canary|LONGHAUL_SUPERVISOR|SECRET|TOKEN/);
  },
);

test(
  "another worker finds the command of a lost worker and gets its real exit code",
  { tags: ["R4"] },
  async () => {
    const id = newId();
    const first = sandboxes.newHost();
    const theirs = await first.open(opened);
    await theirs.start({
      id,
      argv: ["bash", "-c", "echo begun; while [ ! -e go ]; do sleep 0.02; done; exit 42"],
    });
    const lost = theirs.wait(id).catch((error: unknown) => error);
    await first.close();
    expect(String(await lost)).toMatch(/the worker is stopping/);
    const second = sandboxes.newHost();
    const again = await second.open(opened);
    expect(await again.start({ id, argv: ["false"] })).toMatchObject({ kind: "running" });
    const waiting = again.wait(id);
    await again.files.write("go", Buffer.from(""));
    expect(await waiting).toMatchObject({ kind: "exited", exitCode: 42 });
    await second.close();
  },
);

test("each of many concurrent commands gets its own result", async () => {
  const results = await Promise.all(
    Array.from({ length: 20 }, (_, at) => bash(sandbox, `echo ${at}; exit ${at}`)),
  );
  expect(results.map(({ out }) => Number(out))).toEqual(Array.from({ length: 20 }, (_, at) => at));
  expect(results.map(({ state }) => (state.kind === "exited" ? state.exitCode : -1))).toEqual(
    Array.from({ length: 20 }, (_, at) => at),
  );
});
