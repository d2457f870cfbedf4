/** The commit on which checks run that nobody could change. */
import { execFileSync } from "node:child_process";
import { describe, expect, it } from "vitest";
import { createGitAccess } from "../../../activities/git/git-access.ts";
import { restoredCommit } from "../../../activities/git/restored-commit.ts";
import { emptyFolder } from "../../support/empty-folder.ts";
import { gitIn, makeRemote } from "../../support/remotes.ts";

// Only relays and mirrors are in its folder.
const access = createGitAccess({ PATH: process.env["PATH"], LONGHAUL_GIT_FOLDER: "/nonexistent" });

/** What a commit by these shell commands is restored to. */
async function restored(files: Readonly<Record<string, string>>, change: Change, patterns: string[]) {
  const { folder } = makeRemote(files);
  const base = gitIn(folder, "rev-parse", "main");
  const copy = emptyFolder();
  gitIn(copy, "clone", "-q", folder, ".");
  change(copy);
  gitIn(copy, "add", "-Af");
  gitIn(copy, "commit", "-qm", "Work");
  gitIn(copy, "push", "-q", "origin", "HEAD:refs/heads/work");
  const commit = gitIn(folder, "rev-parse", "work");
  const of = { commit, base, patterns };
  const made = await restoredCommit({ access, folder }, of);
  expect(await restoredCommit({ access, folder }, of)).toBe(made);
  const list = gitIn(folder, "ls-tree", "-r", "-z", "--name-only", made).split("\0").filter(Boolean);
  return { list, same: made === commit, read: (path: string) => gitIn(folder, "show", `${made}:${path}`) };
}

type Change = (folder: string) => void;

const FILES = { "a.js": "a", "test/a.test.js": "one", "test/deep/b.test.js": "two", "conftest.py": "" };
const shell =
  (script: string): Change =>
  (folder) =>
    void execFileSync("bash", ["-ec", script], { cwd: folder });

describe("restoredCommit", () => {
  it("brings back what was changed and removed, and removes what was added", async () => {
    const change = shell(
      "echo x > a.js; echo y > test/a.test.js; rm -r test/deep; echo z > test/new.js; echo n > new.js",
    );
    const { list, read } = await restored(FILES, change, ["test/**"]);
    expect(list).toEqual(["a.js", "conftest.py", "new.js", "test/a.test.js", "test/deep/b.test.js"]);
    expect([read("a.js"), read("test/a.test.js")]).toEqual(["x", "one"]);
  });

  it("is the commit itself if nothing protected was changed", async () => {
    expect(await restored(FILES, shell("echo x > a.js"), ["test/**"])).toMatchObject({ same: true });
  });

  it.each([
    ["a file in the way of a folder", "rm -r test; echo x > test", ["test/**"]],
    ["a link in the way of a folder", "mv test elsewhere; ln -s elsewhere test", ["test/**"]],
    [
      "a repository in the way of a folder",
      "rm -r test; git init -q test; git -C test commit -q --allow-empty -m x",
      ["test/**"],
    ],
    [
      "a folder in the way of a file",
      "rm conftest.py; mkdir conftest.py; echo x > conftest.py/x",
      ["conftest.py", "test/**"],
    ],
    [
      "names with other bytes",
      "printf x > $'test/\\xff new\\n\\t\"x.js'; printf x > test/a.test.js",
      ["test/**"],
    ],
    [
      "changed rights",
      "chmod +x test/a.test.js; rm test/deep/b.test.js; ln -s ../a.test.js test/deep/b.test.js",
      ["test/**"],
    ],
  ])("copes with %s", async (_what, script, patterns) => {
    const { list, read } = await restored(FILES, shell(script), patterns);
    expect(list.filter((path) => path.startsWith("test") || path.startsWith("conftest"))).toEqual([
      "conftest.py",
      "test/a.test.js",
      "test/deep/b.test.js",
    ]);
    expect(read("test/deep/b.test.js")).toBe("two");
  });
});
