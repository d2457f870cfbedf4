/** Git's locks in a person's repository: those that a killed `apply` left are removed by the next one, others' are only named. */
import { spawnSync } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, readFileSync, utimesSync, writeFileSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { beforeEach, describe, expect, it } from "vitest";
import { applyOnBranch } from "../../../client/workspace/apply-on-branch.ts";
import { findOnPath } from "../../../client/setup/processes.ts";
import { emptyFolder } from "../../support/empty-folder.ts";
import { gitIn } from "../../support/remotes.ts";

const PATCH = "diff --git a/a.txt b/a.txt\n--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-one\n+two\n";
const apply = { patch: PATCH, branch: "longhaul/x", message: "Do it\n" };
const CHILD = join(import.meta.dirname, "../../support/commands/dies-at.ts");
const TIMEOUT_MS = 120_000;

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
const state = () => [
  gitIn(folder, "status", "--porcelain", "--branch"),
  gitIn(folder, "log", "--format=%s"),
  text("a.txt"),
];
const DONE = ["## longhaul/x", "Do it\nBegin", "two\n"];
const UNTOUCHED = ["## main", "Begin", "one\n"];

/** A git that dies of SIGKILL at one of its commands, as it leaves its repository then. */
function applyWith(options: { dies: string; lock?: string; holds?: string; alone?: boolean }) {
  const { dies, lock, holds = "", alone = false } = options;
  const bin = emptyFolder();
  const made =
    lock === undefined
      ? ""
      : `mkdir -p '${dirname(join(folder, ".git", lock))}'; printf '${holds}' >'${join(folder, ".git", lock)}'`;
  writeFileSync(
    join(bin, "git"),
    `#!/bin/sh\ncase "$*" in *"${dies}"*) ${made}\n${alone ? "" : "kill -9 $PPID;"} kill -9 $$;; esac\nexec '${findOnPath("git")}' "$@"\n`,
  );
  chmodSync(join(bin, "git"), 0o755);
  return spawnSync(process.execPath, [CHILD, JSON.stringify({ folder, apply })], {
    encoding: "utf8",
    env: { ...process.env, PATH: `${bin}${delimiter}${process.env["PATH"]}` },
  });
}

describe("a lock of Git", { timeout: TIMEOUT_MS }, () => {
  it.each([
    ["HEAD.lock", "symbolic-ref -m", ""],
    ["HEAD.lock", "symbolic-ref -m", "ref: refs/heads/longhaul/x\\n"],
    ["refs/heads/longhaul/x.lock", "update-ref -m", ""],
    ["packed-refs.lock", "update-ref -m", ""],
  ])(
    "%s that a killed apply left is removed by the next, which finishes (%s, %j)",
    async (lock, dies, holds) => {
      expect(applyWith({ dies, lock, holds }).signal).toBe("SIGKILL");
      expect(existsSync(join(folder, ".git", lock))).toBe(true);
      expect(await applyOnBranch(folder, apply)).toEqual({ committed: true });
      expect(state()).toEqual(DONE);
      expect(existsSync(join(folder, ".git", lock))).toBe(false);
    },
  );

  it("index.lock is held with our name in it, and removed likewise", async () => {
    expect(applyWith({ dies: "--index-info" }).signal).toBe("SIGKILL");
    expect(text(".git/index.lock")).toMatch(/^longhaul apply, process \d+, /);
    expect(await applyOnBranch(folder, apply)).toEqual({ committed: true });
    expect(state()).toEqual(DONE);
    expect(existsSync(join(folder, ".git", "index.lock"))).toBe(false);
  });

  it.each([
    ["index.lock", "--index-info", undefined],
    ["HEAD.lock", "symbolic-ref -m", "HEAD.lock"],
    ["refs/heads/longhaul/x.lock", "update-ref -m", "refs/heads/longhaul/x.lock"],
  ])("%s of a git that was killed alone is not left", async (lock, dies, made) => {
    const { signal, stderr } = applyWith({
      dies,
      alone: true,
      lock: made,
    });
    expect([signal, stderr]).not.toEqual([null, ""]);
    expect(existsSync(join(folder, ".git", lock))).toBe(false);
    await applyOnBranch(folder, apply);
    expect(state()).toEqual(DONE);
  });

  it("of an apply that was begun on another machine stays, and the machine is named", async () => {
    expect(applyWith({ dies: "symbolic-ref -m", lock: "HEAD.lock" }).signal).toBe("SIGKILL");
    const owner = join(folder, ".git", "longhaul-apply", "owner");
    writeFileSync(owner, JSON.stringify({ pid: 1, born: "1", host: "elsewhere" }));
    await expect(applyOnBranch(folder, apply)).rejects.toThrow(/begun in this checkout on elsewhere/);
    expect(existsSync(join(folder, ".git", "HEAD.lock"))).toBe(true);
    expect(existsSync(owner)).toBe(true);
  });

  it.each(["index.lock", "HEAD.lock", "refs/heads/longhaul/x.lock", "packed-refs.lock"])(
    "%s of somebody else is named with the command that removes it, and nothing is changed",
    async (lock) => {
      const file = join(folder, ".git", lock);
      mkdirSync(dirname(file), { recursive: true });
      writeFileSync(file, "");
      await expect(applyOnBranch(folder, apply)).rejects.toMatchObject({
        message: expect.stringMatching(
          /another git is at work in this checkout, or one was killed.*nothing was changed/,
        ),
        fix: expect.stringContaining(`rm -f '${file}'`),
      });
      expect(existsSync(file)).toBe(true);
      expect(state()).toEqual(UNTOUCHED);
    },
  );

  it.each([
    ["that holds another branch", "ref: refs/heads/other\\n", 0],
    ["made long after", "", 3_600_000],
    ["made before", "", -3_600_000],
  ])("HEAD.lock %s than a killed apply's is not taken for its own", async (_, holds, laterMs) => {
    expect(applyWith({ dies: "symbolic-ref -m", lock: "HEAD.lock", holds }).signal).toBe("SIGKILL");
    const file = join(folder, ".git", "HEAD.lock");
    const then = new Date(Date.now() + laterMs);
    utimesSync(file, then, then);
    await expect(applyOnBranch(folder, apply)).rejects.toThrow(
      /not wholly in this checkout yet[^]*another git is at work[^]*rm -f '.*HEAD\.lock'/,
    );
    expect(existsSync(file)).toBe(true);
    expect(existsSync(join(folder, ".git", "longhaul-apply", "plan"))).toBe(true);
  });
});
