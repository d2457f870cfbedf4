/** What a workspace may leave on a person's disk, checked with a real Git. */
import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { WorkspaceFile } from "../../../activities/store/workspace-pack.ts";
import { staysInside, writeWorkspace } from "../../../client/workspace/write-workspace.ts";
import {
  forgetProgramsRun,
  git,
  hostileWorkspace,
  lookAround,
  programsRun,
  removeHostile,
  trappedConfig,
} from "../../support/hostile-repositories.ts";
import { emptyFolder } from "../../support/empty-folder.ts";
import { file } from "../../support/workspace-file.ts";

/** Some dozens of Git processes, on a busy machine. */
const TIMEOUT_MS = 60_000;

afterAll(removeHostile);

let scratch: string;
let target: string;
beforeEach(() => {
  scratch = emptyFolder();
  target = join(scratch, "target");
  forgetProgramsRun();
});

const link = (path: string, to: string): WorkspaceFile => ({ kind: "link", path, mode: 0o777, target: to });
const folder = (path: string): WorkspaceFile => ({ kind: "folder", path, mode: 0o755 });

describe("a workspace whose repositories run programs", { timeout: TIMEOUT_MS }, () => {
  let files: WorkspaceFile[];
  beforeAll(() => {
    files = hostileWorkspace();
  }, TIMEOUT_MS);

  it("runs them if it is written unchanged, as --git requests", async () => {
    await writeWorkspace(files, target, { git: true });
    lookAround(target);
    const ran = programsRun();
    for (const name of ["main", "module", "nested", "bare"]) expect(ran.join()).toContain(`${name}-`);
    expect(ran.length).toBeGreaterThan(10);
  });

  it("runs nothing in an empty folder, and its history and branches are there", async () => {
    const written = await writeWorkspace(files, target);
    for (const [place, commits] of Object.entries({
      ".": "second\nfirst\n",
      lib: "first\n",
      nested: "first\n",
    }))
      expect(git(join(target, place), "log", "--format=%s")).toBe(commits);
    expect(git(target, "status", "--porcelain")).toContain(" M a.txt");
    lookAround(target);
    expect(programsRun()).toEqual([]);
    expect(git(join(target, "lib"), "log", "--format=%s", "-1")).toBe("mine\n");
    expect(git(target, "remote", "get-url", "origin")).toBe("ssh://git@127.0.0.1:1/x\n");
    expect(existsSync(join(target, "bare/config"))).toBe(true);
    const named = written.unsafe.join("\n");
    for (const name of [
      ".git/hooks/pre-commit",
      "core.fsmonitor in .git/config",
      "include.path in nested/.git/config",
      "alias.st in .git/modules/lib/config",
      "bare/HEAD",
    ])
      expect(named).toContain(name);
    expect(named).not.toContain(".sample");
  });

  it("runs nothing in a repository of the person's own, whose own data are unchanged", async () => {
    mkdirSync(target);
    git(target, "init", "-q", "-b", "main");
    git(target, "commit", "-qm", "mine", "--allow-empty");
    const before = readFileSync(join(target, ".git/config"), "utf8");
    const written = await writeWorkspace(files, target);
    expect(written.untouched).toEqual([".git"]);
    expect(git(target, "log", "--format=%s")).toBe("mine\n");
    expect(readFileSync(join(target, "a.txt"), "utf8")).toBe("two\n");
    const again = await writeWorkspace(files, target, { force: true });
    expect(again.untouched).toEqual(expect.arrayContaining([".git", "nested/.git", "lib/.git"]));
    lookAround(target);
    expect(programsRun()).toEqual([]);
    expect(readFileSync(join(target, ".git/config"), "utf8")).toBe(before);
    expect(readdirSync(join(target, ".git/hooks")).filter((name) => !name.endsWith(".sample"))).toEqual([]);
  });

  it("runs nothing if it comes in two parts, each of them harmless", async () => {
    const at = "odd";
    const config = trappedConfig("parts");
    const parts = [
      [
        file(`${at}/HEAD`, "ref: refs/heads/main\n"),
        file(`${at}/config`, `${config}[core]\n\tworktree = ..\n`),
      ],
      [
        folder(`${at}/objects`),
        folder(`${at}/refs`),
        file(`${at}/hooks/post-index-change`, "#!/bin/sh\n", 0o755),
      ],
    ];
    for (const part of [...parts, ...parts.toReversed()]) await writeWorkspace(part, target, { force: true });
    git(join(target, at), "status");
    expect(programsRun()).toEqual([]);
    expect(existsSync(join(target, at, "HEAD"))).toBe(false);
  });

  it("does not mention an existing repository if the session has none", async () => {
    mkdirSync(target);
    git(target, "init", "-q");
    expect(await writeWorkspace([file("a")], target)).toMatchObject({ files: 1, untouched: [] });
  });

  it("adds nothing to an existing bare repository", async () => {
    mkdirSync(target);
    git(target, "init", "-q", "--bare", "mine.git");
    const hook = [
      file("mine.git/hooks/post-receive", "x", 0o755),
      file("mine.git/config", "[core]\n"),
      file("b"),
    ];
    const written = await writeWorkspace(hook, target, { force: true });
    expect(written).toMatchObject({ files: 1, untouched: ["mine.git"] });
    expect(existsSync(join(target, "mine.git/hooks/post-receive"))).toBe(false);
    for (const inside of ["mine.git", "mine.git/hooks", "x/.git"])
      await expect(writeWorkspace(hook, join(target, inside))).rejects.toMatchObject({ exitCode: 5 });
  });
});

describe("names that lead to a repository indirectly", () => {
  it.each([
    ["another case", [file(".GIT/config")]],
    ["a short name", [file("git~1/config")]],
    ["a trailing dot", [file("a/.git./hooks/x")]],
    ["a stream", [file(".git::$INDEX_ALLOCATION/config")]],
    ["a character without width", [file(".g\u200cit/config")]],
    ["letters that fold", [file("．git/config")]],
    ["a backslash", [file("a\\.git\\config")]],
    ["a link", [folder("evil"), link(".git", "evil")]],
    ["a link into it", [link("notes", ".git/config")]],
    ["a file that points elsewhere", [file("sub/.git", "gitdir: /tmp/elsewhere\n")]],
    ["a file that points up", [file(".git", "gitdir: ../x/.git/modules/a\n")]],
    ["a file that points to a folder", [file("e/HEAD", "ref: x\n"), file("s/.git", "gitdir: ../e\n")]],
    ["a HEAD in capitals' stead", [file("e/head", "ref: refs/heads/a\n")]],
    ["a detached HEAD with more behind it", [file("e/HEAD", `${"0a".repeat(20)}\n${"x".repeat(9_000)}`)]],
    ["a HEAD that is a link", [link("e/HEAD", "refs/heads/main")]],
    ["borrowed objects", [file(".git/objects/info/alternates", "/elsewhere\n")]],
    ["another folder's data", [file(".git/commondir", "../evil\n")]],
    ["a rebase to go on with", [file(".git/rebase-merge/git-rebase-todo", "exec x\n")]],
    ["a configuration for one worktree", [file(".git/config.worktree", "[core]\n")]],
    ["a link among its data", [link(".git/HEAD", "refs/heads/main")]],
    ["a program among its references", [file(".git/refs/remotes/x/config", "[core]\n\tfsmonitor = x\n")]],
    ["a repository among its logs", [file(".git/logs/refs/heads/x/.git/config", "[core]\n")]],
    ["a remote of the old kind", [file(".git/remotes/origin", "URL: ext::x\n")]],
    ["another system's configuration", [file(".hg/hgrc", "[hooks]\n")]],
    ["a third system's configuration", [file("a/.jj/repo/config.toml", "x")]],
  ] satisfies [string, WorkspaceFile[]][])("is not written: %s", async (_, files) => {
    const written = await writeWorkspace([...files, file("kept")], target);
    expect(written.files).toBe(1);
    expect([...written.unsafe, ...written.skipped].length).toBe(
      files.filter(({ kind }) => kind !== "folder").length,
    );
  });

  it("are written if they only look alike", async () => {
    const files = [
      ".gitignore",
      ".github/x.yml",
      "git/config",
      "HEAD",
      "a/config",
      "hooks/x",
      ".gitmodules",
      "a.git/x",
    ];
    const written = await writeWorkspace(
      files.map((path) => file(path)),
      target,
    );
    expect(written).toEqual({ files: files.length, skipped: [], unsafe: [], untouched: [] });
  });
});

describe("links", () => {
  it.each([
    ["a/b", "../c", true],
    ["a/b", "c/d", true],
    ["a", "./b/", true],
    ["a/b", "..", true],
    ["a", "..", false],
    ["a/b", "../../c", false],
    ["a", "/etc/passwd", false],
    ["a", "", false],
    ["a/b", "../../target/c", false],
    ["a", "deep/link/../../x", false],
  ])("of the name %s to %s stay inside: %s", (path, to, inside) => {
    expect(staysInside(path, to)).toBe(inside);
  });

  it("lead out through no other link", async () => {
    writeFileSync(join(scratch, "secret"), "secret");
    const files = [
      folder("deep/er"),
      link("deep/er/up", "../.."),
      link("out", "deep/er/up/../secret"),
      link("in", "deep/er/up/kept"),
      file("kept"),
    ];
    const written = await writeWorkspace(files, target);
    expect(written.skipped).toEqual(["out"]);
    expect(readFileSync(join(target, "in"), "utf8")).toBe("x\n");
    for (const { path } of files.filter(({ kind }) => kind === "link"))
      expect(existsSync(join(target, path)) && readFileSync(join(target, "kept"), "utf8")).not.toBe("secret");
  });

  it("that are already in the folder are refused before anything is written", async () => {
    mkdirSync(target);
    symlinkSync(scratch, join(target, "sub"));
    await expect(writeWorkspace([file("a"), file("sub/b")], target)).rejects.toThrow(/is a link/);
    expect(readdirSync(target)).toEqual(["sub"]);
  });
});

it("replaces our own folder whole, which only its owner may enter", async () => {
  await writeWorkspace([file("old"), file(".git/hooks/x", "x", 0o755)], target, { ours: true });
  await writeWorkspace([file("new")], target, { ours: true });
  expect(readdirSync(target)).toEqual(["new"]);
  expect(lstatSync(target).mode & 0o777).toBe(0o700);
});

describe("a target that cannot be written", () => {
  it.each(["file", "file/below"])("is refused with its reason: %s", async (name) => {
    writeFileSync(join(scratch, "file"), "");
    for (const ours of [false, true]) {
      await expect(writeWorkspace([file("a")], join(scratch, name), { ours })).rejects.toMatchObject({
        exitCode: 5,
        message: expect.stringContaining("cannot be written"),
      });
      if (name === "file") break;
    }
    expect(readdirSync(scratch)).toEqual(["file"]);
  });

  it("is refused and not tried forever if an existing folder answers that there is none", async () => {
    await expect(writeWorkspace([file("a")], "/proc/longhaul/new")).rejects.toMatchObject({ exitCode: 5 });
  });
});
