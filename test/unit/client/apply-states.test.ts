/** `apply` in each state that a person's checkout can be in: refused before anything is written, or the change on a branch of its own. */
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { spawnSync } from "node:child_process";
import { beforeEach, describe, expect, it, vi } from "vitest";
import { applyOnBranch } from "../../../client/workspace/apply-on-branch.ts";
import { emptyFolder } from "../../support/empty-folder.ts";
import { gitIn } from "../../support/remotes.ts";

const PATCH = `diff --git a/a.txt b/a.txt
--- a/a.txt
+++ b/a.txt
@@ -1 +1 @@
-one
+two
diff --git a/new.txt b/new.txt
new file mode 100644
--- /dev/null
+++ b/new.txt
@@ -0,0 +1 @@
+new
`;
const change = { patch: PATCH, branch: "longhaul/x", message: "Do it\n" };

/** As a person calls it: what fails with a conflict is what the test wants. */
const tryGit = (folder: string, ...args: string[]) =>
  spawnSync("git", args, { cwd: folder, encoding: "utf8", env: { ...process.env, GIT_EDITOR: "true" } });

function commitAll(folder: string, texts: Readonly<Record<string, string>>, message: string): void {
  for (const [name, text] of Object.entries(texts)) writeFileSync(join(folder, name), text);
  gitIn(folder, "add", "-A");
  gitIn(folder, "commit", "-q", "-m", message);
}

function newRepository(): string {
  const folder = emptyFolder();
  gitIn(folder, "init", "-q", "-b", "main");
  gitIn(folder, "config", "user.name", "Ada");
  gitIn(folder, "config", "user.email", "ada@example.org");
  return folder;
}

/** Two branches that differ in `c.txt`; `a.txt` is what the change is for. */
function forked(): string {
  const folder = newRepository();
  commitAll(folder, { "a.txt": "one\n", "c.txt": "base\n" }, "Begin");
  gitIn(folder, "checkout", "-q", "-b", "side");
  commitAll(folder, { "c.txt": "side 1\n" }, "Side 1");
  commitAll(folder, { "c.txt": "side 2\n" }, "Side 2");
  gitIn(folder, "checkout", "-q", "main");
  commitAll(folder, { "c.txt": "main\n" }, "Main");
  return folder;
}

let folder: string;
beforeEach(() => {
  folder = forked();
});

/** All that a refused call could have changed. */
const everything = () => ({
  status: gitIn(folder, "status", "--porcelain"),
  refs: gitIn(folder, "for-each-ref"),
  files: readdirSync(join(folder, ".git")).toSorted(),
  a: readFileSync(join(folder, "a.txt"), "utf8"),
  index: readFileSync(join(folder, ".git", "index")).toString("hex"),
});

it("is made in the checkout that it is called in, whatever a hook's variables name", async () => {
  const other = emptyFolder();
  gitIn(other, "init", "-q");
  vi.stubEnv("GIT_DIR", join(other, ".git"));
  vi.stubEnv("GIT_WORK_TREE", other);
  vi.stubEnv("GIT_INDEX_FILE", join(other, ".git", "index.lock"));
  vi.stubEnv("GIT_OBJECT_DIRECTORY", join(other, "objects"));
  const applied = await applyOnBranch(folder, change).finally(() => vi.unstubAllEnvs());
  expect(applied).toMatchObject({ committed: true });
  expect(gitIn(folder, "show", "longhaul/x:a.txt")).toBe("two");
  expect(readdirSync(other)).toEqual([".git"]);
});

describe("in the middle of", () => {
  it.each([
    ["a merge", "A merge", "git merge --abort", () => tryGit(folder, "merge", "side")],
    [
      "a merge without a conflict",
      "A merge",
      "git merge --abort",
      () => tryGit(folder, "merge", "-s", "ours", "--no-commit", "side"),
    ],
    ["a rebase", "A rebase", "git rebase --abort", () => tryGit(folder, "rebase", "side")],
    [
      "a rebase by patches",
      "A rebase",
      "git rebase --abort",
      () => tryGit(folder, "rebase", "--apply", "side"),
    ],
    [
      "an interactive rebase that stopped to edit",
      "A rebase",
      "git rebase --abort",
      () =>
        spawnSync("git", ["rebase", "-i", "HEAD~1"], {
          cwd: folder,
          env: { ...process.env, GIT_SEQUENCE_EDITOR: "sed -i s/^pick/edit/" },
        }),
    ],
    [
      "a cherry-pick",
      "A cherry-pick",
      "git cherry-pick --abort",
      () => tryGit(folder, "cherry-pick", "side"),
    ],
    [
      "a cherry-pick of several commits between two of them",
      "A cherry-pick or revert",
      "git cherry-pick --abort",
      () => {
        tryGit(folder, "cherry-pick", "main..side");
        writeFileSync(join(folder, "c.txt"), "mine\n");
        tryGit(folder, "commit", "-q", "-am", "Mine");
      },
    ],
    ["a revert", "A revert", "git revert --abort", () => tryGit(folder, "revert", "--no-edit", "side~1")],
    ["a bisect", "A bisect", "git bisect reset", () => tryGit(folder, "bisect", "start", "main", "main~1")],
    [
      "an am",
      "`git am`",
      "git am --abort",
      () => {
        writeFileSync(
          join(folder, "..", "side.patch"),
          gitIn(folder, "format-patch", "--stdout", "side~1") + "\n",
        );
        tryGit(folder, "am", "--quiet", join("..", "side.patch"));
      },
    ],
  ])("%s it is refused, with the way out, and nothing is written", async (_, what, abort, begin) => {
    begin();
    const before = everything();
    await expect(applyOnBranch(folder, change)).rejects.toMatchObject({
      message: expect.stringMatching(
        new RegExp(`^${what}.* is not finished in this checkout: nothing was changed`),
      ),
      fix: expect.stringContaining(abort),
    });
    expect(everything()).toEqual(before);
  });

  it("a stash that conflicted, it leaves the conflict and its stages alone", async () => {
    writeFileSync(join(folder, "c.txt"), "stashed\n");
    tryGit(folder, "stash");
    commitAll(folder, { "c.txt": "later\n" }, "Later");
    tryGit(folder, "stash", "pop");
    const stages = gitIn(folder, "ls-files", "--unmerged");
    expect(stages).toContain("c.txt");
    expect(await applyOnBranch(folder, change)).toEqual({ committed: true });
    expect(gitIn(folder, "ls-files", "--unmerged")).toBe(stages);
    expect(gitIn(folder, "diff", "--name-only", "main", "longhaul/x")).toBe("a.txt\nnew.txt");
  });
});

describe("the change is one commit on its own branch", () => {
  const expectApplied = (at: string, parent: string) => {
    expect(gitIn(at, "symbolic-ref", "--short", "HEAD")).toBe("longhaul/x");
    expect(gitIn(at, "rev-parse", "HEAD~1")).toBe(parent);
    expect(readFileSync(join(at, "a.txt"), "utf8")).toBe("two\n");
    expect(gitIn(at, "status", "--porcelain")).toBe("");
  };

  it("of the commit that is checked out, on a detached HEAD", async () => {
    gitIn(folder, "checkout", "-q", "--detach", "side~1");
    const at = gitIn(folder, "rev-parse", "HEAD");
    const branches = gitIn(folder, "for-each-ref", "--format=%(refname) %(objectname)");
    expect(await applyOnBranch(folder, change)).toEqual({ committed: true });
    expectApplied(folder, at);
    expect(
      gitIn(
        folder,
        "for-each-ref",
        "--format=%(refname) %(objectname)",
        "refs/heads/main",
        "refs/heads/side",
      ),
    ).toBe(branches);
  });

  it("and the first one, in a repository without any", async () => {
    folder = newRepository();
    writeFileSync(join(folder, "mine.txt"), "mine\n");
    gitIn(folder, "add", "mine.txt");
    const patch = PATCH.slice(PATCH.indexOf("diff --git a/new.txt"));
    expect(await applyOnBranch(folder, { ...change, patch })).toEqual({ committed: true });
    expect(gitIn(folder, "ls-tree", "--name-only", "longhaul/x")).toBe("new.txt");
    expect(gitIn(folder, "log", "--format=%s")).toBe("Do it");
    expect(gitIn(folder, "status", "--porcelain")).toBe("A  mine.txt");
  });

  it("in a linked worktree, and the others stay as they are", async () => {
    const linked = join(emptyFolder(), "linked");
    gitIn(folder, "worktree", "add", "-q", linked, "side");
    const theirs = () => ({ ...everything(), refs: gitIn(folder, "rev-parse", "HEAD", "side", "main") });
    const before = theirs();
    expect(await applyOnBranch(linked, change)).toEqual({ committed: true });
    expectApplied(linked, gitIn(folder, "rev-parse", "side"));
    expect(theirs()).toEqual(before);
  });

  it("of a submodule, in it; the repository around it only sees a new commit there", async () => {
    const outer = newRepository();
    commitAll(outer, { "outer.txt": "o\n" }, "Outer");
    gitIn(outer, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", folder, "sub");
    gitIn(outer, "commit", "-q", "-m", "Add sub");
    const sub = join(outer, "sub");
    gitIn(sub, "config", "user.name", "Ada");
    gitIn(sub, "config", "user.email", "ada@example.org");
    expect(await applyOnBranch(sub, change)).toEqual({ committed: true });
    expectApplied(sub, gitIn(folder, "rev-parse", "main"));
    expect(gitIn(outer, "status", "--porcelain")).toBe("M sub");
    expect(gitIn(outer, "symbolic-ref", "--short", "HEAD")).toBe("main");
  });

  it("below a sparse checkout, whose other files stay left out", async () => {
    mkdirSync(join(folder, "far"));
    commitAll(folder, { "far/far.txt": "far\n" }, "Far");
    gitIn(folder, "sparse-checkout", "set", "--no-cone", "/a.txt", "/c.txt", "/new.txt");
    const at = gitIn(folder, "rev-parse", "HEAD");
    expect(await applyOnBranch(folder, change)).toEqual({ committed: true });
    expectApplied(folder, at);
    expect(existsSync(join(folder, "far"))).toBe(false);
    expect(gitIn(folder, "ls-tree", "-r", "--name-only", "HEAD")).toContain("far/far.txt");
  });
});

describe("refused with words, and nothing written", () => {
  it.each([
    [
      "a bare repository",
      () => {
        const bare = join(emptyFolder(), "bare.git");
        gitIn(folder, "clone", "-q", "--bare", folder, bare);
        return bare;
      },
    ],
    ["Git's own folder", () => join(folder, ".git")],
  ])("in %s", async (_, placeOf) => {
    const place = placeOf();
    const before = readdirSync(place).toSorted();
    await expect(applyOnBranch(place, change)).rejects.toMatchObject({
      message: expect.stringMatching(
        /is not a Git checkout: fatal: this operation must be run in a work tree/,
      ),
      fix: expect.stringContaining("longhaul pull ID DIR"),
    });
    expect(readdirSync(place).toSorted()).toEqual(before);
  });

  it("for a file of a submodule, from the repository around it", async () => {
    const inner = forked();
    gitIn(folder, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", inner, "sub");
    gitIn(folder, "commit", "-q", "-m", "Add sub");
    const before = everything();
    const patch = PATCH.replaceAll("a.txt", "sub/a.txt");
    await expect(applyOnBranch(folder, { ...change, patch })).rejects.toThrow(/sub/);
    expect(everything()).toEqual(before);
    expect(readFileSync(join(folder, "sub", "a.txt"), "utf8")).toBe("one\n");
    expect(gitIn(folder, "status", "--porcelain")).toBe("");
  });
});
