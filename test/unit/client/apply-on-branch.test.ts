import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { applyOnBranch } from "../../../client/workspace/apply-on-branch.ts";
import { gitIn } from "../../support/remotes.ts";
import { emptyFolder } from "../../support/empty-folder.ts";

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
const change = { patch: PATCH, branch: "longhaul/x", message: "Do it\n\nLonghaul-Session: x\n" };

let folder: string;
beforeEach(() => {
  folder = emptyFolder();
  gitIn(folder, "init", "-q", "-b", "main");
  gitIn(folder, "config", "user.name", "Ada");
  gitIn(folder, "config", "user.email", "ada@example.org");
  writeFileSync(join(folder, "a.txt"), "one\n");
  gitIn(folder, "add", "-A");
  gitIn(folder, "commit", "-q", "-m", "Begin");
});

const text = (name: string) => readFileSync(join(folder, name), "utf8");
const branches = () => gitIn(folder, "branch", "--format=%(refname:short)").split("\n");

describe("a change on a new branch", () => {
  it("is one commit there, runs no hook, and leaves other uncommitted work alone", async () => {
    for (const hook of ["pre-commit", "commit-msg", "post-checkout", "pre-applypatch"]) {
      writeFileSync(join(folder, ".git", "hooks", hook), `#!/bin/sh\ntouch ${folder}/ran-${hook}\nexit 1\n`);
      chmodSync(join(folder, ".git", "hooks", hook), 0o755);
    }
    writeFileSync(join(folder, "mine.txt"), "mine\n");
    expect(await applyOnBranch(folder, change)).toEqual({ committed: true });
    expect(gitIn(folder, "log", "--format=%s", "main..longhaul/x")).toBe("Do it");
    expect([text("a.txt"), text("new.txt"), text("mine.txt")]).toEqual(["two\n", "new\n", "mine\n"]);
    expect(gitIn(folder, "status", "--porcelain")).toBe("?? mine.txt");
    expect(gitIn(folder, "show", "main:a.txt")).toBe("one");
    expect(existsSync(join(folder, "ran-post-checkout"))).toBe(false);
  });

  it.each([
    ["a changed file is not committed", () => writeFileSync(join(folder, "a.txt"), "mine\n")],
    ["a file is there that it would make", () => writeFileSync(join(folder, "new.txt"), "mine\n")],
    [
      "a file is not as it was",
      () => {
        writeFileSync(join(folder, "a.txt"), "other\n");
        gitIn(folder, "commit", "-q", "-am", "Other");
      },
    ],
    ["the branch is there", () => void gitIn(folder, "branch", "longhaul/x")],
  ])("is refused if %s, and nothing is changed", async (_what, arrange) => {
    arrange();
    const [before, had] = [gitIn(folder, "status", "--porcelain"), branches()];
    await expect(applyOnBranch(folder, change)).rejects.toMatchObject({ exitCode: 5 });
    expect([gitIn(folder, "status", "--porcelain"), branches()]).toEqual([before, had]);
    expect(gitIn(folder, "symbolic-ref", "--short", "HEAD")).toBe("main");
  });

  it.runIf(process.getuid?.() !== 0)("says of a checkout that cannot be written why", async () => {
    chmodSync(join(folder, ".git"), 0o555);
    onTestFinished(() => chmodSync(join(folder, ".git"), 0o755));
    await expect(applyOnBranch(folder, change)).rejects.toThrow("cannot be written: you have no permission.");
  });

  it("cannot write into .git, or through a link out of the checkout", async () => {
    const into = (path: string) => PATCH.replaceAll("new.txt", path);
    await expect(applyOnBranch(folder, { ...change, patch: into(".git/hooks/x") })).rejects.toMatchObject({
      exitCode: 5,
    });
    await expect(applyOnBranch(folder, { ...change, patch: into("../out.txt") })).rejects.toMatchObject({
      exitCode: 5,
    });
    expect(existsSync(join(folder, ".git", "hooks", "x"))).toBe(false);
  });

  it("begins in the current folder", async () => {
    mkdirSync(join(folder, "sub"));
    writeFileSync(join(folder, "sub", "a.txt"), "one\n");
    gitIn(folder, "add", "-A");
    gitIn(folder, "commit", "-q", "-m", "Sub");
    await applyOnBranch(join(folder, "sub"), change);
    expect([text("a.txt"), text("sub/a.txt")]).toEqual(["one\n", "two\n"]);
  });

  it("is refused outside a checkout", async () => {
    const bare = emptyFolder();
    await expect(applyOnBranch(bare, change)).rejects.toMatchObject({ exitCode: 5 });
  });
});
