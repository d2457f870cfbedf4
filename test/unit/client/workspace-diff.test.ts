import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { WorkspaceFile } from "../../../activities/sandbox/workspace-pack.ts";
import { diffWorkspaces } from "../../../client/workspace-diff.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "longhaul-diff-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const file = (path: string, content: string | Buffer, mode = 0o644): WorkspaceFile => ({
  kind: "file",
  path,
  mode,
  bytes: Buffer.from(content),
});

/** What `git apply` makes of the patch, by path; undefined where the file is gone. */
function applied(
  before: readonly WorkspaceFile[],
  after: readonly WorkspaceFile[],
  paths: readonly string[],
) {
  const git = (...args: string[]) => execFileSync("git", args, { cwd: folder });
  git("init", "-q");
  for (const entry of before) {
    if (entry.kind !== "file") continue;
    mkdirSync(dirname(join(folder, entry.path)), { recursive: true });
    writeFileSync(join(folder, entry.path), entry.bytes);
  }
  writeFileSync(join(folder, "the.patch"), diffWorkspaces(before, after).patch);
  git("apply", "the.patch");
  return paths.map((path) => {
    try {
      return readFileSync(join(folder, path), "utf8");
    } catch {
      return undefined;
    }
  });
}

describe("diffWorkspaces", () => {
  it("makes a patch that git applies: changed, new, empty, removed, without a last line end", () => {
    const before = [file("a/b.txt", "one\ntwo\nthree"), file("gone.txt", "x\n"), file("same", "s")];
    const after = [file("a/b.txt", "one\n2\nthree\n"), file("new dir/n.txt", "n"), file("same", "s")];
    expect(applied(before, after, ["a/b.txt", "gone.txt", "new dir/n.txt", "same"])).toEqual([
      "one\n2\nthree\n",
      undefined,
      "n",
      "s",
    ]);
  });

  it("says nothing where nothing changed, and notes modes and binaries", () => {
    const old = [file("x", "1\n"), file("b", Buffer.from([0, 1]))];
    expect(diffWorkspaces(old, old)).toEqual({ patch: "", changed: 0 });
    const { patch, changed } = diffWorkspaces(old, [file("x", "1\n", 0o755), file("b", Buffer.from([0, 2]))]);
    expect(changed).toBe(2);
    expect(patch).toContain("old mode 100644\nnew mode 100755\n");
    expect(patch).toContain("Binary files a/b and b/b differ\n");
  });

  it("leaves out what is built or fetched, as .gitignore has it", () => {
    const after = [file(".gitignore", "dist\n"), file("dist/x", "1"), file("node_modules/y/z", "1")];
    expect(diffWorkspaces([], after).changed).toBe(1);
  });
});
