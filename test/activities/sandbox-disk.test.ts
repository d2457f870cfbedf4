import { beforeAll, beforeEach, expect, test } from "vitest";
import type { Sandbox } from "../../activities/sandbox/sandbox.ts";
import type { SandboxSpec } from "../../activities/sandbox/sandbox-host.ts";
import type { InvokedTool } from "../../activities/tools/invoke.ts";
import { saveWorkspace } from "../support/save-workspace.ts";
import { bash, useTestSandboxes, newId, waitUntil } from "../support/test-sandboxes.ts";
import { eventually } from "../support/eventually.ts";
import { callTool } from "../support/tool-context.ts";

const MIB = 2 ** 20;
const LIMIT = 96 * MIB;
/** What a test can write at least, in MiB: the 29 MiB in the image's home folder count too. */
const FILLED_MIB = 60;

const sandboxes = useTestSandboxes();
let sandbox: Sandbox;
beforeAll(async () => {
  sandbox = await open({ bytes: LIMIT, freeBytes: MIB });
});
beforeEach(async () => {
  await bash(sandbox, "chmod -R u+rwx /workspace/* 2>/dev/null; rm -rf /workspace/* ~/fill /var/tmp/fill");
});

const open = (disk: NonNullable<SandboxSpec["disk"]>): Promise<Sandbox> =>
  sandboxes.host.open(sandboxes.spec({ disk }));
const sh = (command: string, on = sandbox): Promise<InvokedTool> => callTool(on, "bash", { command });
const megabytesOf = async (path: string, on = sandbox): Promise<number> =>
  Number((await bash(on, `du -sm ${path} | cut -f1`)).out);

/** Writes one file after another until it is ended; the files' names show how far it got. */
const fill = (where: string, megabytes = 8): string =>
  `mkdir -p ${where}; for i in $(seq 1000); do head -c ${megabytes}M /dev/zero > ${where}/$i || exit 1; sleep 0.02; done`;

/** Writes through an open folder below one that it has made inaccessible. */
const fillClosed = `python3 -c "
import os, time
os.makedirs('fill/closed')
inside = os.open('fill/closed', os.O_RDONLY)
os.chmod('fill', 0)
for i in range(1000):
    with os.fdopen(os.open(str(i), os.O_WRONLY | os.O_CREAT, dir_fd=inside), 'wb') as file:
        file.write(b'x' * 8388608)
    time.sleep(0.02)"`;

test("one file can never be larger than the limit, and its writer gets an error", async () => {
  // On a slow disk the count ends it earlier. On a busy host, what others write may count for a moment, and nothing may grow.
  const size = await eventually("a file grows up to the limit", async () => {
    const result = await sh("rm -f one; head -c 500M /dev/zero > one");
    expect(result.text).toContain("sandbox.disk");
    const written = Number((await bash(sandbox, "stat -c %s one")).out);
    return written > FILLED_MIB * MIB && written;
  });
  expect(size).toBeLessThanOrEqual(LIMIT);
  await bash(sandbox, "rm one");
  const alone = await sh("exec head -c 500M /dev/zero > one");
  expect(alone.text).toContain("sandbox.disk");
  await bash(sandbox, "rm -f one");
  expect((await sh("truncate -s 5G sparse; stat -c %s sparse")).text).toMatch(/File (size|too)/i);
  expect((await sh("rm -f one sparse; echo alive")).text).toMatch(/^alive/);
});

test.each([
  ["the workspace", "fill"],
  ["the home folder", "~/fill"],
  ["/var/tmp", "/var/tmp/fill"],
  ["a folder that it has made inaccessible", "fill/closed"],
])(
  "a command that fills %s is ended at the limit with advice, and the next call works",
  { tags: ["R24"] },
  async (_, where) => {
    const script = where === "fill/closed" ? fillClosed : fill(where);
    const result = await sh(script);
    expect(result.outcome, result.text).toBe("error");
    expect(result.text).toContain("take more than the 101 MB of its disk limit (sandbox.disk)");
    expect(result.text).toContain("then rm");
    expect((await sh("chmod 755 fill 2>/dev/null; echo alive")).text).toContain("alive");
    // It kept writing until it was noticed: for one count, a quarter of a second.
    expect(await megabytesOf(where.split("/").slice(0, 3).join("/"))).toBeLessThan(400);
    const written = await callTool(sandbox, "write_file", { path: "more.txt", content: "x" });
    expect(written).toMatchObject({ outcome: "error", text: expect.stringContaining("disk limit") });
    expect((await sh("echo more > more.txt; echo $?")).text).toMatch(/no file could grow in this command/);
    const freed = await sh(`rm -rf ${where.replace("/closed", "")} more.txt`);
    expect(freed.outcome).toBe("completed");
    expect((await sh("echo more > more.txt; cat more.txt")).text).toBe("more");
    expect(await callTool(sandbox, "write_file", { path: "more.txt", content: "y" })).toMatchObject({
      outcome: "completed",
    });
  },
);

test("deleted files that are held open count", { tags: ["R24"] }, async () => {
  const held = await sh(
    "python3 -c \"import time, os\nheld = []\nfor i in range(40):\n f = open('gone', 'wb'); os.unlink('gone'); f.write(b'x' * 8388608); f.flush(); held.append(f); time.sleep(0.02)\nprint('all')\ntime.sleep(60)\"",
  );
  expect(held.text).toContain("disk limit");
  expect((await sh("echo free > free.txt; cat free.txt")).text).toBe("free");
});

test("thousands of empty files count too", { tags: ["R29"] }, async () => {
  // Room for 4,900 files of one block each beside the image's home folder: to make and remove more takes a busy disk a minute.
  const small = await open({ bytes: 48 * MIB, freeBytes: MIB });
  const made = "python3 -c \"for i in range(8000): open(f'many/{i}', 'w').close()\"";
  const many = await sh(`mkdir many; ${made}; sleep 300`, small);
  expect(many.text).toContain("disk limit");
  // What others write to the disk meanwhile may count too.
  const left = await sh("ls many | wc -l; rm -rf many", small);
  expect(Number(left.text.split("\n")[0])).toBeGreaterThan(2_400);
  expect((await sh("echo free > free.txt; cat free.txt", small)).text).toBe("free");
});

test("a process that an ended command left behind is ended too if it fills the disk", async () => {
  const started = await sh(`setsid bash -c '${fill("left")}' >/dev/null 2>&1 & echo left`);
  expect(started.text).toBe("left");
  const script = "pgrep -f '[l]eft/' >/dev/null || echo gone";
  await waitUntil(async () => (await bash(sandbox, script)).out === "gone\n", "it is gone", 20_000);
  expect(await megabytesOf("left")).toBeGreaterThan(FILLED_MIB);
  expect((await sh("rm -rf left; echo alive")).text).toContain("alive");
});

test("what other sandboxes write does not count while commands are being started", async () => {
  const beside = await sandbox.start({ id: newId(), argv: ["sleep", "600"] });
  const other = await open({ bytes: 8 * LIMIT, freeBytes: MIB });
  const isWriting = { now: true };
  // Twice what the first sandbox may have.
  const written = sh(fill("fill").replace("1000", "24"), other).finally(() => (isWriting.now = false));
  const starts = async (): Promise<void> => {
    while (isWriting.now) await bash(sandbox, "true");
  };
  await Promise.all([written, starts(), starts(), starts(), starts()]);
  expect((await written).outcome).toBe("completed");
  expect(await sandbox.state(beside.id)).toMatchObject({ kind: "running" });
  await sandbox.kill(beside.id);
});

test("a save's pack does not count, so no running command is ended because of it", async () => {
  // The file fits beside the image's home folder, its pack would not: 29 + 20 MiB, and 20 more.
  const small = await open({ bytes: 64 * MIB, freeBytes: MIB });
  const beside = await small.start({ id: newId(), argv: ["sleep", "600"] });
  await sh(`head -c ${20 * MIB} /dev/urandom > random`, small);
  const { saved } = await saveWorkspace(small, undefined);
  expect(saved?.pack.length).toBeGreaterThan(18 * MIB);
  expect(await small.state(beside.id)).toMatchObject({ kind: "running" });
});

/** Writes 8 MiB again and again, hidden by what `hide` does with the open `file`. */
const fillHidden = (prepare: string, hide: string): string => `exec python3 - <<'X'
import ctypes, os, signal, socket, time
${prepare}
held = []
for i in range(100):
    file = open(f'hidden{i}', 'wb')
    file.write(b'x' * 8388608)
    file.flush()
    ${hide}
    time.sleep(0.05)
print('all written')
time.sleep(60)
X`;
test.each([
  [
    "below the longest path",
    fillHidden(
      "for level in range(60):\n    os.makedirs('d' * 100, exist_ok=True); os.chdir('d' * 100)",
      "file.close()",
    ),
  ],
  [
    "by a process that cannot be inspected",
    fillHidden("ctypes.CDLL(None).prctl(4, 0)", "os.unlink(file.name); held.append(file)"),
  ],
  [
    "in transit through a socket",
    fillHidden(
      "ends = []",
      "os.unlink(file.name); pair = socket.socketpair(); ends.append(pair); socket.send_fds(pair[0], [b'x'], [file.fileno()]); file.close()",
    ),
  ],
  [
    "only in a mapping",
    fillHidden(
      "libc = ctypes.CDLL(None)",
      "handle = os.open(file.name, os.O_RDWR); os.unlink(file.name); libc.mmap(None, ctypes.c_size_t(4096), 1, 1, handle, ctypes.c_long(0)); os.close(handle); file.close()",
    ),
  ],
  [
    "while every count is killed",
    fillHidden("", "os.unlink(file.name); held.append(file); os.kill(-1, signal.SIGKILL)"),
  ],
])("what is hidden %s counts", { tags: ["R24"] }, async (_, script) => {
  const result = await sh(script);
  expect(result.text).toContain("disk limit");
  expect(result.text).not.toContain("all written");
  await bash(sandbox, "rm -rf /workspace/*");
  expect((await sh("echo free > free.txt; cat free.txt")).text).toBe("free");
});

test(
  "the commands of the sandbox that grew are ended, those of its neighbours continue",
  { tags: ["R24"] },
  async () => {
    const neighbour = await open({ bytes: LIMIT, freeBytes: MIB });
    const started = await neighbour.start({ id: "steady", argv: ["bash", "-c", "echo on; sleep 300"] });
    expect(started.kind).toBe("running");
    const hidden = fillHidden("ctypes.CDLL(None).prctl(4, 0)", "os.unlink(file.name); held.append(file)");
    expect((await sh(hidden)).text).toContain("disk limit");
    expect((await neighbour.state("steady"))?.kind).toBe("running");
  },
);

test(
  "on a host whose disk is nearly full, sandboxes that grow are ended and the others continue",
  { tags: ["R24"] },
  async () => {
    const disk = { bytes: 2 ** 40, freeBytes: 2 ** 60 };
    const [full, neighbour] = await Promise.all([open(disk), open(disk)]);
    await neighbour.start({ id: "steady", argv: ["bash", "-c", "echo on; sleep 300"] });
    const before = await sandboxes.relays(full);
    expect(before).toHaveLength(1);
    const result = await sh("head -c 40M /dev/zero; sleep 50; echo late", full);
    expect(result.text).toContain(
      "ended, with everything that ran in the sandbox: the host's disk is nearly full",
    );
    // One signal to all processes ended it; the worker's relay is not one of the tools' processes.
    expect(await sandboxes.relays(full)).toEqual(before);
    expect((await sh("sleep 1; echo second", full)).text).toMatch(/^second\n\[no file could grow/);
    expect((await neighbour.state("steady"))?.kind).toBe("running");
  },
);

test("the outputs of running commands count too", async () => {
  const flood = ["bash", "-c", "head -c 60000000 /dev/zero; sleep 300"];
  await Promise.all(["run-1", "run-2"].map((id) => sandbox.start({ id, argv: flood })));
  const ends = await Promise.all(["run-1", "run-2"].map((id) => sandbox.wait(id, { timeoutMs: 20_000 })));
  expect(ends).toMatchObject([
    { kind: "killed", by: "disk" },
    { kind: "killed", by: "disk" },
  ]);
  expect((await sh("echo free > free.txt; cat free.txt")).text).toBe("free");
});

test(
  "/tmp and shared memory are full at their own size, and nothing else is affected",
  { tags: ["R24"] },
  async () => {
    const result = await sh(
      "head -c 400M /dev/zero > /tmp/fill; head -c 100M /dev/zero > /dev/shm/fill; du -m /tmp/fill /dev/shm/fill; rm /tmp/fill /dev/shm/fill",
    );
    expect(result.text.match(/No space left on device|File size limit/g)).toHaveLength(2);
    expect((await sh("echo alive")).text).toBe("alive");
  },
);

test("the outputs of all commands together are bounded: the oldest are deleted first", async () => {
  const flood = (id: string) => sandbox.run({ id, argv: ["head", "-c", "64000000", "/dev/zero"] });
  await flood("flood-1");
  expect((await sandbox.state("flood-1"))?.outKept).toBe(64_000_000);
  await flood("flood-2");
  expect(await sandbox.state("flood-1")).toMatchObject({ outBytes: 64_000_000, outKept: 0 });
  expect(await sandbox.read("flood-1", "out", 0, 100)).toHaveLength(0);
  expect((await sandbox.state("flood-2"))?.outKept).toBe(64_000_000);
});
