import { beforeAll, describe, expect, test } from "vitest";
import type { Sandbox } from "../../activities/sandbox/sandbox.ts";
import type { SandboxSpec } from "../../activities/sandbox/sandbox-host.ts";
import type { InvokedTool } from "../../activities/tools/invoke.ts";
import { bash, useTestSandboxes, waitUntil } from "../support/test-sandboxes.ts";
import { callTool } from "../support/tool-context.ts";

const MIB = 2 ** 20;

const sandboxes = useTestSandboxes();
let spec: SandboxSpec;
let sandbox: Sandbox;
beforeAll(async () => {
  spec = sandboxes.spec({
    memoryBytes: 384 * MIB,
    pids: 96,
    disk: { bytes: 8 * 1024 * MIB, freeBytes: MIB },
  });
  sandbox = await sandboxes.host.open(spec);
});

const call = (name: string, input: object): Promise<InvokedTool> => callTool(sandbox, name, input);
const sh = (command: string, timeout_seconds = 20): Promise<InvokedTool> =>
  call("bash", { command, timeout_seconds });

/** The next call works in the same sandbox, and quickly. */
async function expectUsable(): Promise<void> {
  const { container } = await sandboxes.host.open(spec);
  expect(container).toBe(sandbox.container);
  await waitUntil(async () => (await sh("echo alive")).text === "alive", "the next call works", 20_000);
}

describe("a way out of the sandbox", () => {
  test.each([
    ["mount", "mount -t tmpfs none /mnt"],
    ["mount --bind", "mount --bind / /mnt"],
    ["umount", "umount /proc"],
    ["a user namespace", "unshare -Ur true"],
    ["a mount namespace", "unshare -m true"],
    ["another's namespace", "nsenter -t 1 -m true"],
    ["chroot", "chroot / true"],
    ["a device", "mknod d c 1 1"],
    ["a host's disk", "head -c 1 /dev/sda /dev/vda /dev/nvme0n1"],
    ["the kernel's memory", "head -c 1 /dev/mem /dev/kmem /proc/kcore"],
    ["a setting of the kernel", "echo 1 > /proc/sys/kernel/core_pattern"],
    ["sysrq", "echo h > /proc/sysrq-trigger"],
    ["a control group", "mkdir /sys/fs/cgroup/x || mkdir /sys/fs/cgroup/memory/x"],
    ["the first process's memory", "head -c 1 /proc/1/mem"],
    ["the first process's environment", "cat /proc/1/environ"],
    ["the first process's files", "ls /proc/1/fd || cd /proc/1/root"],
    ["the supervisor's environment", "cat /proc/$(pgrep -u 0 -o python3)/environ"],
    [
      "the supervisor's socket",
      "python3 -c \"import socket; socket.socket(socket.AF_UNIX).connect('/var/lib/longhaul/control.sock')\"",
    ],
    ["the supervisor's folder", "ls /var/lib/longhaul"],
    ["the supervisor's life", "kill -9 1 $(pgrep -u 0)"],
    ["the engine's socket", "ls /var/run/docker.sock /run/docker.sock /run/containerd"],
    ["root by su", "echo | su -c true"],
    ["root by sudo", "sudo -n true"],
    ["root's files", "cat /etc/shadow"],
    ["a system folder", "touch /etc/x || touch /usr/bin/x"],
    ["another owner", "touch own; chown 0 own"],
    ["the clock", "date -s 2030-01-01"],
    ["the host's name", "hostname evil"],
    ["a raw socket", "python3 -c 'import socket; socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)'"],
    ["a packet socket", "python3 -c 'import socket; socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)'"],
    [
      "a packet socket without a protocol",
      "python3 -c 'import socket; socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, 0)'",
    ],
    [
      "a packet socket past the queue",
      "python3 -c 'import socket; socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0).setsockopt(263, 20, 1)'",
    ],
    ["an express data path", "python3 -c 'import socket; socket.socket(44, socket.SOCK_RAW, 0)'"],
    [
      "a raw socket of IPv6",
      "python3 -c 'import socket; socket.socket(socket.AF_INET6, socket.SOCK_RAW, 58)'",
    ],
    [
      "a raw socket with headers",
      "python3 -c 'import socket; socket.socket(socket.AF_INET, socket.SOCK_RAW, 255)'",
    ],
    ["a higher rank", "nice -n -5 true 2>&1 | grep -q cannot && exit 1"],
    ["more open files", "ulimit -Hn 1000000"],
    ["safety where memory ends", "echo -1000 > /proc/self/oom_score_adj"],
  ])("through %s is closed", { tags: ["R52"] }, async (_, script) => {
    const { state } = await bash(sandbox, script);
    expect(state).toMatchObject({ kind: "exited" });
    expect(state.kind === "exited" && state.exitCode).not.toBe(0);
  });

  test(
    "by a system call is closed: ptrace, bpf, perf, keys, kexec, modules, namespaces, io_uring",
    { tags: ["R52"] },
    async () => {
      // Numbers of x86-64 and arm64; a call that the machine does not have is no way out either.
      const script = `python3 - <<'X'
import ctypes, os, platform
libc = ctypes.CDLL(None, use_errno=True)
arm = platform.machine() == "aarch64"
calls = {"ptrace": (101, 117, 16, 1, 0, 0), "bpf": (321, 280, 0, 0, 0), "perf_event_open": (298, 241, 0, 0, -1, -1, 0),
  "add_key": (248, 217, b"user", b"x", b"y", 1, -2), "kexec_load": (246, 104, 0, 0, 0, 0), "init_module": (175, 105, 0, 0, b""),
  "setns": (308, 268, 0, 0), "unshare": (272, 97, 0x10000000), "mount": (165, 40, b"a", b"/mnt", b"tmpfs", 0, 0),
  "pivot_root": (155, 41, b"/", b"/"), "swapon": (167, 224, b"/x", 0), "reboot": (169, 142, 0, 0, 0, 0),
  "userfaultfd": (323, 282, 0), "open_by_handle_at": (304, 265, 0, 0, 0), "setuid": (105, 146, 0), "setgid": (106, 144, 0)}
open_ones = []
for name, (intel, other, *arguments) in calls.items():
    if libc.syscall(other if arm else intel, *arguments) >= 0:
        open_ones.append(name)
print(open_ones)
X`;
      expect((await bash(sandbox, script)).out).toBe("[]\n");
    },
  );

  test("by a set-uid program is closed: its bit is set and has no effect", { tags: ["R52"] }, async () => {
    const { out } = await bash(
      sandbox,
      "cp $(command -v id) mine; chmod u+s,g+s mine; ./mine -u; find / -xdev -perm /6000 -user 0 -type f 2>/dev/null | while read -r f; do timeout 2 \"$f\" -c 'id -u' </dev/null 2>/dev/null | grep -x 0; done; echo end",
    );
    expect(out).toBe("1000\nend\n");
  });

  test(
    "by another network differs from the profile, and the sandbox is refused",
    { tags: ["R52"] },
    async () => {
      const other = sandboxes.spec({ network: "bridge" });
      const opened = await sandboxes.host.open(other);
      const network = await sandboxes.docker.createNetwork({
        Name: `${other.sessionId}-net`,
        Internal: true,
      });
      try {
        await network.connect({ Container: opened.container });
        await expect(sandboxes.newHost().open(other)).rejects.toMatchObject({ type: "SandboxRefused" });
      } finally {
        await sandboxes.host.remove(other.sessionId);
        await network.remove();
      }
    },
  );
});

describe("excessive use", () => {
  test(
    "of processes is contained, does not affect other sessions, and the next call works",
    { tags: ["R29"] },
    async () => {
      const result = await sh("bomb() { bomb | bomb & }; bomb; sleep 30", 2);
      expect(result.outcome).toBe("error");
      await expectUsable();
      const leaving = await sh(
        "for i in $(seq 200); do setsid env -i sleep 500 >/dev/null 2>&1 & done; sleep 1; echo made",
        10,
      );
      expect(["completed", "error"]).toContain(leaving.outcome);
      const { state } = await bash(sandbox, "kill -9 -1");
      // It does not kill its caller, nor processes that it may not signal.
      expect(state).toMatchObject({ kind: "exited", exitCode: 0 });
      await expectUsable();
      expect((await sh("pgrep -c sleep || true")).text).toMatch(/^0/);
    },
  );

  test(
    "of memory ends only its own processes: in one process, in many, or in files in memory",
    { tags: ["R29"] },
    async () => {
      const single = await sh(
        "python3 -c 'x = bytearray(2 * 1024 ** 3); print(len(x))'; echo shell goes on",
        30,
      );
      expect(single.text).not.toContain("2147483648");
      expect(single.text).toContain("shell goes on");
      await expectUsable();
      const many = await sh(
        "for i in 1 2 3 4 5 6; do python3 -c 'import time; x = bytearray(100 * 1024 ** 2); time.sleep(2); print(len(x))' & done; wait",
        30,
      );
      expect(many.text.match(/104857600/g)?.length ?? 0).toBeLessThan(6);
      await expectUsable();
      await sh(
        "head -c 80M /dev/zero > /tmp/a; head -c 60M /dev/zero > /dev/shm/b; python3 -c 'x = bytearray(300 * 1024 ** 2)'",
        30,
      );
      await sh("rm -f /tmp/a /dev/shm/b");
      await expectUsable();
    },
  );

  test("of open files, pipes, sockets and locks reaches its own limit", { tags: ["R29"] }, async () => {
    const { text } = await sh(
      "python3 -c \"import os\nheld = []\ntry:\n  while True: held.append(os.open('/dev/null', 0))\nexcept OSError as e: print(len(held) < 20000, e.strerror)\"",
    );
    expect(text).toBe("True Too many open files");
    await expectUsable();
  });

  test("by zombies does not use up the processes", { tags: ["R29"] }, async () => {
    const { state } = await bash(
      sandbox,
      "python3 -c 'import os, time\nfor i in range(200):\n  p = os.fork()\n  if p == 0:\n    if os.fork() == 0: os._exit(0)\n    os._exit(0)\n  os.waitpid(p, 0)'; sleep 0.3; ps -eo stat | grep -c '^Z' > zombies; true",
    );
    expect(state).toMatchObject({ kind: "exited", exitCode: 0 });
    await waitUntil(
      async () => Number((await bash(sandbox, "ps -eo stat | grep -c ^Z")).out) < 3,
      "the zombies are reaped",
    );
  });
});

describe("a process that does not end", () => {
  test.each([
    ["left its session", "setsid bash -c 'while :; do echo beat >> BEAT; sleep 0.1; done' &"],
    [
      "forked twice",
      "(setsid bash -c 'trap \"\" TERM HUP INT; while :; do echo beat >> BEAT; sleep 0.1; done' & ) &",
    ],
    ["has another environment", "env -i setsid bash -c 'while :; do echo beat >> BEAT; sleep 0.1; done' &"],
    [
      "left its session under another name and environment",
      '(env -i setsid python3 -c \'import os, time\nif os.fork(): os._exit(0)\nos.setsid()\nwhile True:\n  open("BEAT", "a").write("beat\\n"); time.sleep(0.1)\' & ) & sleep 0.3;',
    ],
  ])(
    "because it %s ends with its command's time, and the next call works",
    { tags: ["R10"] },
    async (name, script) => {
      const beat = `beat-${name.replaceAll(/\W/g, "-")}`;
      const result = await sh(`${script.replaceAll("BEAT", beat)} sleep 100`, 1);
      expect(result.text).toContain("timed out");
      const size = async (): Promise<string> => (await bash(sandbox, `wc -c < ${beat}`)).out;
      await waitUntil(
        async () => {
          const before = await size();
          await bash(sandbox, "sleep 0.4");
          return (await size()) === before && before.trim() !== "0";
        },
        "it has stopped beating",
        15_000,
      );
    },
  );

  test(
    "but kills everything it may, again and again, does not end the sandbox",
    { tags: ["R11"] },
    async () => {
      await call("write_file", { path: "kept.txt", content: "kept" });
      for (let round = 0; round < 5; round += 1) await sh("kill -9 -1");
      await expectUsable();
      expect((await call("read_file", { path: "kept.txt" })).text).toBe("1\tkept");
      // In a loop, while file tools and commands begin.
      await sandbox.start({
        id: "reaper",
        argv: [
          "python3",
          "-c",
          "import os, signal, time\nos.setsid()\nwhile True:\n for p in os.listdir('/proc'):\n  if p.isdigit() and int(p) != os.getpid():\n   try: os.kill(int(p), signal.SIGKILL)\n   except OSError: pass\n time.sleep(0.05)",
        ],
      });
      await Promise.all(
        [1, 2, 3].map((at) => callTool(sandbox, "read_file", { path: "kept.txt" }).then(() => at)),
      );
      await sandbox.kill("reaper", 0);
      await expectUsable();
    },
  );
});

test(
  "a flood of 100 MB on both streams, or one line of 50 MB, does not fill the worker's memory",
  { tags: ["R26"], timeout: 120_000 },
  async () => {
    const before = process.memoryUsage().rss;
    let most = before;
    const watching = setInterval(() => (most = Math.max(most, process.memoryUsage().rss)), 20);
    const both = await sh(
      "head -c 100M /dev/zero | tr '\\0' x & head -c 100M /dev/zero | tr '\\0' e >&2; wait",
      60,
    );
    const line = await sh("head -c 50M /dev/zero | tr '\\0' l; echo; echo end", 60);
    const endless = await sh("yes", 2);
    clearInterval(watching);
    expect(both.text.length).toBeLessThanOrEqual(30_000);
    expect(line.text).toMatch(/^l+[^]*l\nend$/);
    expect(endless.text).toContain("timed out");
    expect(most - before).toBeLessThan(64 * MIB);
    await expectUsable();
  },
);
