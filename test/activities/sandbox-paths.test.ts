import { describe, expect, test } from "vitest";
import { createSanitizer } from "../../activities/redaction/sanitizer.ts";
import type { InvokedTool } from "../../activities/tools/invoke.ts";
import { DOT_PNG } from "../support/images.ts";
import { bash, useSandbox, useTestSandboxes, newId, waitUntil } from "../support/test-sandboxes.ts";
import { callTool, createFakeMemory } from "../support/tool-context.ts";

const sandboxes = useTestSandboxes();
const sandbox = useSandbox(sandboxes);

const { clean } = createSanitizer([]);
const call = (name: string, input: object): Promise<InvokedTool> =>
  callTool(sandbox, name, input, {}, { clean });

/** Calls of every tool that takes a path, with this one: to read, write, change, move to, list, search or look at it. */
const askAll = (path: string): Promise<[string, InvokedTool][]> => {
  const patch = (lines: string): object => ({ patch: `*** Begin Patch\n${lines}\n*** End Patch` });
  const asked: readonly (readonly [string, object])[] = [
    ["read_file", { path }],
    ["write_file", { path, content: "evil" }],
    ["edit_file", { path, old_string: "root", new_string: "evil" }],
    ["apply_patch", patch(`*** Add File: ${path}\n+evil`)],
    ["apply_patch", patch(`*** Update File: ${path}\n@@\n-root\n+evil`)],
    ["apply_patch", patch(`*** Update File: ok.txt\n*** Move to: ${path}\n@@\n-ok\n+evil`)],
    ["view_image", { path }],
    ["grep_content", { pattern: "root", path }],
    ["list_directory", { path }],
    ["glob_files", { pattern: "*", path }],
    ["bash", { command: "cat passwd 2>/dev/null; pwd", cwd: path }],
  ];
  return Promise.all(
    asked.map(async ([tool, input]): Promise<[string, InvokedTool]> => [tool, await call(tool, input)]),
  );
};

describe("no tool leaves the workspace", () => {
  test(
    "by dots, absolute and sibling paths, or links of any kind",
    { tags: ["R52", "invariant-11"] },
    async () => {
      await bash(
        sandbox,
        `echo ok > ok.txt; ln -s / l-root; ln -s /etc l-etc; ln -s /tmp/made l-dangling; ln -s .. l-up; ln -s l-etc l-twice
       ln -s /proc/self/root l-proc; ln -s /proc/self/cwd/../etc l-cwd; ln -s /dev/fd l-fd; mkdir -p deep; ln -s ../../etc deep/l`,
      );
      for (const path of [
        "../etc/passwd",
        "../../../../etc/passwd",
        "/etc/passwd",
        "/workspace/../etc/passwd",
        "/workspace-evil/x",
        "/workspaces",
        "l-root/etc/passwd",
        "l-etc/passwd",
        "l-dangling",
        "l-up/etc/passwd",
        "l-twice/passwd",
        "l-proc/etc/passwd",
        "l-cwd/passwd",
        "l-fd/0",
        "deep/l/passwd",
        "deep/../../etc/passwd",
        "./deep/./../l-root/etc/passwd",
      ]) {
        for (const [tool, result] of await askAll(path)) {
          expect(result.outcome, `${tool} ${path}: ${result.text}`).toBe("error");
          expect(result.text, `${tool} ${path}`).not.toMatch(/root:x:0|daemon:/);
        }
        // Only the link itself is removed; its target is out of reach.
        const deleted = await call("apply_patch", {
          patch: `*** Begin Patch\n*** Delete File: ${path}\n*** End Patch`,
        });
        expect(deleted.outcome, `delete ${path}: ${deleted.text}`).toBe(
          path === "l-dangling" ? "completed" : "error",
        );
      }
      for (const path of ["l-root", "l-etc", "l-up", "l-proc", "deep/l", ".."]) {
        for (const tool of ["list_directory", "glob_files", "grep_content"]) {
          const result = await call(tool, { path, pattern: "root" });
          expect(result.outcome, `${tool} ${path}: ${result.text}`).toBe("error");
        }
      }
      expect((await call("glob_files", { pattern: "../**/passwd" })).text).not.toMatch(/etc\/passwd/);
      expect((await call("glob_files", { pattern: "/etc/*" })).text).not.toMatch(/passwd/);
      expect((await call("grep_content", { pattern: "root:x:0" })).text).toMatch(/No line matches/);
      const looked =
        "cat ok.txt; ls /tmp; ls -d /workspace-evil; find / -xdev -newer ok.txt -name made 2>/dev/null";
      expect((await bash(sandbox, looked)).out).toBe("ok\n");
    },
  );

  test("by an encoded path, which is only a name", async () => {
    for (const path of [
      "%2e%2e/etc/passwd",
      "..%2fetc",
      "\\..\\etc",
      "~/x",
      "$HOME/x",
      "file:///etc/passwd",
      "…/x",
    ]) {
      const written = await call("write_file", { path, content: "here" });
      expect(written.outcome, path).toBe("completed");
      expect((await call("read_file", { path })).text).toBe("1\there");
    }
    expect(
      (await bash(sandbox, "find /home/agent /tmp -newer ok.txt -type f; ls -d '%2e%2e' '~' '$HOME'")).out,
    ).toBe("$HOME\n%2e%2e\n~\n");
  });

  test("while a link is replaced a thousand times", { tags: ["R52"], timeout: 120_000 }, async () => {
    const id = newId();
    const flip = `import os
os.makedirs("flip/in", exist_ok=True)
open("flip/in/passwd", "w").write("inside\\n")
os.chdir("flip")
os.symlink("in", "x")
while True:
    for target in ("/etc", "in", "/tmp"):
        os.symlink(target, "l")
        os.replace("l", "x")`;
    await sandbox.start({ id, argv: ["python3", "-c", flip] });
    await waitUntil(async () => (await sandbox.files.stat("flip/x")).ok, "it flips");
    const seen = new Map<string, number>();
    const note = (what: string): unknown => seen.set(what, (seen.get(what) ?? 0) + 1);
    for (let at = 0; at < 500; at += 1) {
      const read = await sandbox.files.read("flip/x/passwd");
      note(read.ok ? `read ${Buffer.from(read.bytes).toString()}` : read.reason);
      const wrote = await sandbox.files.write(`flip/x/made-${at}`, Buffer.from("x"));
      note(wrote.ok ? "wrote" : wrote.reason);
    }
    await sandbox.kill(id, 0);
    expect(seen.get("read inside\n")).toBeGreaterThan(0);
    expect(seen.get("wrote")).toBeGreaterThan(0);
    expect(seen.get("outside")).toBeGreaterThan(0);
    for (const what of seen.keys())
      expect(["read inside\n", "wrote", "outside", "not-found", "failed"]).toContain(what);
    expect((await bash(sandbox, "ls /tmp /etc | grep -c made-")).out).toBe("0\n");
  });
});

describe("what is not a plain file", () => {
  test(
    "is refused at once by every tool that reads or writes: pipes, devices, sockets, folders",
    { tags: ["R28"] },
    async () => {
      await bash(
        sandbox,
        "mkfifo s-pipe; mkdir s-folder; ln -s /dev/zero s-zero; ln -s /proc/kmsg s-kmsg; ln -s /dev/stdin s-stdin; python3 -c \"import socket; socket.socket(socket.AF_UNIX).bind('s-socket')\"",
      );
      for (const path of ["s-pipe", "s-socket", "s-zero", "s-kmsg", "s-stdin"]) {
        const began = performance.now();
        for (const [tool, result] of await askAll(path))
          expect(result.outcome, `${tool} ${path}: ${result.text}`).toBe("error");
        expect(performance.now() - began, path).toBeLessThan(10_000);
      }
      for (const tool of ["read_file", "view_image", "edit_file", "write_file"]) {
        const result = await call(tool, { path: "s-folder", content: "x", old_string: "a", new_string: "b" });
        expect(result.outcome, tool).toBe("error");
      }
      // A search skips them.
      expect((await call("grep_content", { pattern: "nothing-here" })).text).toContain("No line matches");
    },
  );

  test(
    "or is a sparse file of five gigabytes, is answered in under 3 s by each tool",
    { tags: ["R28"] },
    async () => {
      await bash(sandbox, "truncate -s 5G s-sparse");
      for (const [tool, input] of [
        ["read_file", { path: "s-sparse" }],
        ["read_file", { path: "s-sparse", offset: 3 }],
        ["edit_file", { path: "s-sparse", old_string: "a", new_string: "b" }],
        ["view_image", { path: "s-sparse" }],
      ] as const) {
        const began = performance.now();
        const result = await call(tool, input);
        expect(performance.now() - began, `${tool}: ${result.text}`).toBeLessThan(3_000);
      }
      await bash(sandbox, "rm s-sparse");
    },
  );
});

test(
  "odd names are taken literally by every tool or refused clearly",
  { tags: ["R57"], timeout: 120_000 },
  async () => {
    const names = [
      "new\nline",
      "quo\"te's",
      "$(touch hacked)",
      "`touch hacked`",
      "-rf",
      "--help",
      "a'; drop table sessions;--",
      "*?[x]{y}",
      "back\\slash",
      " blank ",
      "tab\there",
      "\u001b[31mred",
      "ünï😀",
      "b".repeat(255),
    ];
    const images = createFakeMemory();
    for (const name of names) {
      const path = `odd/${name}`;
      const wrote = await call("write_file", { path, content: "needle\n" });
      expect(wrote.outcome, `${name}: ${wrote.text}`).toBe("completed");
      expect((await call("read_file", { path })).text).toBe("1\tneedle");
      expect((await call("edit_file", { path, old_string: "needle", new_string: "pin" })).outcome).toBe(
        "completed",
      );
      expect((await call("grep_content", { pattern: "pin", path })).text, name).toContain("1: pin");
      if (!name.includes("\n") && name.trim() === name) {
        const patch = `*** Begin Patch\n*** Update File: ${path}\n@@\n-pin\n+needle\n*** End Patch`;
        expect((await call("apply_patch", { patch })).outcome, name).toBe("completed");
      }
      await sandbox.files.write(`pics/${name}`, DOT_PNG);
      const viewed = await callTool(sandbox, "view_image", { path: `pics/${name}` }, { memory: images });
      expect(viewed.outcome, `${name}: ${viewed.text}`).toBe("completed");
      await bash(sandbox, `mkdir -p dirs`);
      const inside = await call("write_file", { path: `dirs/${name}/f`, content: "x" });
      expect(inside.outcome, name).toBe("completed");
      expect((await call("list_directory", { path: `dirs/${name}` })).text, name).toContain("f");
      expect((await call("glob_files", { pattern: "*", path: `dirs/${name}` })).text, name).toContain("f");
      expect((await call("bash", { command: "ls", cwd: `dirs/${name}` })).text, name).toBe("f");
    }
    const listed = await call("list_directory", { path: "odd" });
    expect(listed.text.split("\n").length).toBeGreaterThanOrEqual(names.length);
    expect((await call("glob_files", { pattern: "*", path: "odd" })).text.split("\n")).toHaveLength(
      names.length,
    );
    await bash(sandbox, "cd odd; printf 'x' > $'no\\xffutf8'; printf 'needle' > $'\\xc3\\x28'");
    for (const [tool, input] of [
      ["list_directory", { path: "odd" }],
      ["glob_files", { pattern: "*utf8", path: "odd" }],
      ["grep_content", { pattern: "needle", path: "odd" }],
    ] as const) {
      const { outcome, text } = await call(tool, input);
      expect(outcome, text).toBe("completed");
      expect(text.isWellFormed()).toBe(true);
    }
    expect((await call("read_file", { path: "odd/no\ufffdutf8" })).outcome).toBe("error");
    expect((await call("write_file", { path: `odd/${"b".repeat(256)}`, content: "" })).outcome).toBe("error");
    expect((await call("write_file", { path: "odd/nul\0", content: "" })).outcome).toBe("error");
    expect((await call("read_file", { path: "odd/lone\ud800" })).outcome).toBe("error");
    expect((await bash(sandbox, "find . -name hacked; ls hacked")).out).toBe("");
  },
);
