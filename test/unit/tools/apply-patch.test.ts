import { chmod, readdir, readFile, stat, symlink } from "node:fs/promises";
import path from "node:path";
import { describe, expect, it } from "vitest";
import type { SandboxFiles, FileAnswer, Sandbox } from "../../../activities/sandbox/sandbox.ts";
import type { InvokedTool } from "../../../activities/tools/invoke.ts";
import type { ToolContext } from "../../../activities/tools/tool.ts";
import { callTool, useFakeSandbox, putFile } from "../../support/tool-context.ts";

const sandbox = useFakeSandbox();

const put = (name: string, content: string | Uint8Array) => putFile(sandbox, name, content);

describe("apply_patch", () => {
  const patch =
    "*** Begin Patch\n*** Update File: a.txt\n@@\n-a\n+A\n*** Add File: new.txt\n+new\n*** Update File: b.txt\n@@\n-b\n+B\n*** Delete File: c.txt\n*** End Patch";

  /** The sandbox, except that `answer` answers the nth write, after `before` ran. */
  function withFault(
    nth: number,
    answer: FileAnswer<never> | undefined,
    before = async (): Promise<void> => {},
  ): Sandbox {
    let writes = 0;
    const write: SandboxFiles["write"] = async (...args) => {
      writes += 1;
      if (writes !== nth) return sandbox.files.write(...args);
      await before();
      return answer ?? sandbox.files.write(...args);
    };
    return { ...sandbox, files: { ...sandbox.files, write } };
  }

  const apply = async (body: string, overrides: Partial<ToolContext> = {}): Promise<InvokedTool> =>
    callTool(sandbox, "apply_patch", { patch: `*** Begin Patch\n${body}\n*** End Patch` }, overrides);

  it("restores what it wrote when a later file cannot be written", async () => {
    for (const name of ["a", "b", "c"]) await put(`${name}.txt`, `${name}\n`);
    const full = { ok: false, reason: "no-space", message: "b.txt: no space left" } as const;
    const result = await callTool(withFault(3, full), "apply_patch", { patch });
    expect(result).toMatchObject({ outcome: "error" });
    expect(result.text).toContain("all files are as they were. b.txt: no space left");
    for (const name of ["a", "b", "c"]) {
      expect(await readFile(path.join(sandbox.root, `${name}.txt`), "utf8")).toBe(`${name}\n`);
    }
    await expect(readFile(path.join(sandbox.root, "new.txt"))).rejects.toThrow("ENOENT");
  });

  it("plans again when a file changes between reading and writing, and keeps that change", async () => {
    for (const name of ["a", "b", "c"]) await put(`${name}.txt`, `${name}\n`);
    const other = withFault(3, undefined, () => put("b.txt", "b\nby someone else\n"));
    expect(await callTool(other, "apply_patch", { patch })).toMatchObject({ outcome: "completed" });
    expect(await readFile(path.join(sandbox.root, "b.txt"), "utf8")).toBe("B\nby someone else\n");
    expect(await readFile(path.join(sandbox.root, "a.txt"), "utf8")).toBe("A\n");
  });

  it("restores a removed file with its mode when a later removal fails", async () => {
    for (const name of ["a", "b"]) await put(`${name}.sh`, `${name}\n`);
    await chmod(path.join(sandbox.root, "a.sh"), 0o750);
    const refused = { ok: false, reason: "denied", message: "b.sh: not permitted" } as const;
    const { files } = sandbox;
    const stubborn = {
      ...files,
      remove: async (...args: Parameters<SandboxFiles["remove"]>) =>
        args[0] === "b.sh" ? refused : files.remove(...args),
    };
    const result = await callTool({ ...sandbox, files: stubborn }, "apply_patch", {
      patch: "*** Begin Patch\n*** Delete File: a.sh\n*** Delete File: b.sh\n*** End Patch",
    });
    expect(result.text).toContain("all files are as they were. b.sh: not permitted");
    expect((await stat(path.join(sandbox.root, "a.sh"))).mode & 0o777).toBe(0o750);
  });

  it("keeps the mode of a file that it moves", async () => {
    await put("a.sh", "#!/bin/sh\necho a\n");
    await chmod(path.join(sandbox.root, "a.sh"), 0o755);
    const moved = await apply("*** Update File: a.sh\n*** Move to: b.sh\n@@\n-echo a\n+echo b");
    expect(moved.outcome, moved.text).toBe("completed");
    expect((await stat(path.join(sandbox.root, "b.sh"))).mode & 0o777).toBe(0o755);
  });

  it("deletes binary and large files, and a link instead of its target", async () => {
    await put("binary", Buffer.from([0xff, 0xfe, 0, 1]));
    await put("large.txt", "x".repeat(11_000_000));
    await put("target.txt", "kept\n");
    await symlink("target.txt", path.join(sandbox.root, "link"));
    await symlink("nowhere", path.join(sandbox.root, "dangling"));
    const names = ["binary", "large.txt", "link", "dangling"];
    const deleted = await apply(names.map((name) => `*** Delete File: ${name}`).join("\n"));
    expect(deleted.outcome, deleted.text).toBe("completed");
    expect(await readdir(sandbox.root)).toEqual(["target.txt"]);
    expect(await readFile(path.join(sandbox.root, "target.txt"), "utf8")).toBe("kept\n");
  });

  it("moves a link's target and removes the link alone", async () => {
    await put("target.txt", "one\n");
    await symlink("target.txt", path.join(sandbox.root, "link"));
    const moved = await apply("*** Update File: link\n*** Move to: b.txt\n@@\n-one\n+two");
    expect(moved.outcome, moved.text).toBe("completed");
    expect((await readdir(sandbox.root)).toSorted()).toEqual(["b.txt", "target.txt"]);
    expect(await readFile(path.join(sandbox.root, "target.txt"), "utf8")).toBe("one\n");
  });

  it("replaces a binary file by a new text once it is deleted, although updating refuses it", async () => {
    await put("data", Buffer.from([0x89, 0xfe, 0, 1]));
    expect((await apply("*** Update File: data\n@@\n-a\n+b")).text).toContain("not UTF-8");
    expect((await apply("*** Add File: data\n+text")).text).toContain("exists already");
    const replaced = await apply("*** Delete File: data\n*** Add File: data\n+text");
    expect(replaced.outcome, replaced.text).toBe("completed");
    expect(await readFile(path.join(sandbox.root, "data"), "utf8")).toBe("text\n");
  });

  it("does not count a binary file that still exists as deleted after a restart", async () => {
    await put("data", Buffer.from([0xff, 0xfe, 0, 1]));
    const again = await apply("*** Delete File: data", { resumed: true });
    expect(again.text).toBe("Applied:\nD data");
    expect(await readdir(sandbox.root)).toEqual([]);
  });
});

it("the fake sandbox's files describe and remove a link itself, as the sandbox does", async () => {
  await put("target.txt", "kept\n");
  await symlink("target.txt", path.join(sandbox.root, "link"));
  expect(await sandbox.files.stat("link")).toMatchObject({ kind: "link", target: "target.txt" });
  expect(await sandbox.files.remove("link")).toEqual({ ok: true });
  expect(await readdir(sandbox.root)).toEqual(["target.txt"]);
});
