/** `apply`, `pull` and `run` write a person's files: killed at any point, they leave nothing half done that the same call does not complete. */
import { spawnSync } from "node:child_process";
import {
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, it } from "vitest";
import { applyOnBranch } from "../../../client/workspace/apply-on-branch.ts";
import { diffWorkspaces } from "../../../client/workspace/workspace-diff.ts";
import { writeWorkspace } from "../../../client/workspace/write-workspace.ts";
import type { Job } from "../../support/commands/dies-at.ts";
import { emptyFolder } from "../../support/empty-folder.ts";
import { createRandom } from "../../support/random.ts";
import { gitIn } from "../../support/remotes.ts";
import { file } from "../../support/workspace-file.ts";

type Texts = Readonly<Record<string, string>>;

const SEED = Number(process.env["SEED"] ?? 33);
/** Of each change; all of them with 0. Each takes a process, a second of a busy machine. */
const POINTS = Number(process.env["POINTS"] ?? 5);

const CHILD = join(import.meta.dirname, "../../support/commands/dies-at.ts");
const TIMEOUT_MS = 600_000;

function run(job: Job) {
  const { stdout, stderr, signal } = spawnSync(process.execPath, [CHILD, JSON.stringify(job)], {
    encoding: "utf8",
  });
  return { stdout, stderr, signal };
}

/** Some of the points at which the job can be killed. */
function pointsOf(job: Job): number[] {
  const { stdout, stderr } = run(job);
  const count = Number(stdout);
  expect(count, stderr).toBeGreaterThan(3);
  const all = Array.from({ length: count }, (_, at) => at + 1);
  if (POINTS === 0) return all;
  const random = createRandom(SEED);
  return [...new Set(Array.from({ length: POINTS }, () => random.pick(all)))];
}

function killedAt(at: number, job: Job): void {
  const { signal, stderr } = run({ ...job, at });
  expect([signal, stderr]).toEqual(["SIGKILL", ""]);
}

function write(folder: string, texts: Texts): void {
  for (const [path, text] of Object.entries(texts)) {
    mkdirSync(join(folder, dirname(path)), { recursive: true });
    writeFileSync(join(folder, path), text);
  }
}

/** All files of a folder but for the repository's own. */
function textsIn(folder: string): Texts {
  const names = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter(
    (name) => !/^\.git(\/|$)/.test(name) && !lstatSync(join(folder, name)).isDirectory(),
  );
  return Object.fromEntries(names.toSorted().map((name) => [name, readFileSync(join(folder, name), "utf8")]));
}

const sorted = (texts: Texts): Texts =>
  Object.fromEntries(Object.entries(texts).toSorted(([one], [other]) => (one < other ? -1 : 1)));

const patchOf = (before: Texts, after: Texts) => {
  const files = (texts: Texts) => Object.entries(texts).map(([path, text]) => file(path, text));
  return diffWorkspaces(files(before), files(after), { binaries: "bytes" }).patch;
};

const CHANGES: Readonly<Record<string, readonly [before: Texts, after: Texts]>> = {
  "files changed, made and removed": [
    { "a.txt": "one\n", "gone.txt": "g\n", "same.txt": "s\n", "deep/er/gone.txt": "g\n" },
    { "a.txt": "two\n", "same.txt": "s\n", "new/folder/b.txt": "b\n", "c.txt": "c\n" },
  ],
  "a file that becomes a folder": [
    { a: "file\n", b: "b\n" },
    { "a/b/c": "deep\n", b: "changed\n" },
  ],
  "a folder that becomes a file": [{ "a/b/c": "deep\n", "a/d": "d\n" }, { a: "file\n" }],
};

describe.each(Object.entries(CHANGES))("apply of %s", (_, [before, after]) => {
  it("that is killed at any point is completed by the next one", { timeout: TIMEOUT_MS }, async () => {
    const template = emptyFolder();
    gitIn(template, "init", "-q", "-b", "main");
    for (const [key, value] of Object.entries({ "user.name": "Ada", "user.email": "ada@example.org" }))
      gitIn(template, "config", key, value);
    write(template, before);
    gitIn(template, "add", "-A");
    gitIn(template, "commit", "-q", "-m", "Begin");
    writeFileSync(join(template, "mine"), "mine\n");
    const apply = { patch: patchOf(before, after), branch: "longhaul/x", message: "Do it\n" };
    const copy = () => {
      const folder = emptyFolder();
      cpSync(template, folder, { recursive: true, preserveTimestamps: true });
      return folder;
    };
    for (const at of pointsOf({ folder: copy(), apply })) {
      const folder = copy();
      killedAt(at, { folder, apply });
      const { ".longhaul-apply.new": _unfinished, ...left } = textsIn(folder);
      for (const [path, text] of Object.entries(left))
        expect([{ ...before, mine: "mine\n" }[path], after[path]], `${path} at ${at}`).toContain(text);
      expect(gitIn(folder, "show", "main", "--format=%s", "--no-patch")).toBe("Begin");
      const again = await applyOnBranch(folder, apply).catch((error: Error) => error.message);
      // Killed when nothing was left to do but to tidy up.
      if (typeof again === "string")
        expect(again, `at ${at}`).toMatch(/^There is a branch longhaul\/x already/);
      else expect(again, `at ${at}`).toEqual({ committed: true });
      expect(textsIn(folder), `at ${at}`).toEqual(sorted({ ...after, mine: "mine\n" }));
      expect(gitIn(folder, "status", "--porcelain", "--branch")).toBe("## longhaul/x\n?? mine");
      expect(gitIn(folder, "log", "--format=%s")).toBe("Do it\nBegin");
      expect(gitIn(folder, "rev-parse", "--abbrev-ref", "@{-1}")).toBe("main");
      expect(existsSync(join(folder, ".git", "longhaul-apply"))).toBe(false);
    }
  });
});

describe("what an apply that was killed has begun", () => {
  const [before, after] = [
    { "a.txt": "one\n", "b.txt": "one\n" },
    { "a.txt": "two\n", "b.txt": "two\n" },
  ];
  const apply = { patch: patchOf(before, after), branch: "longhaul/x", message: "Do it\n" };

  const checkout = () => {
    const folder = emptyFolder();
    gitIn(folder, "init", "-q", "-b", "main");
    for (const [key, value] of Object.entries({ "user.name": "Ada", "user.email": "ada@example.org" }))
      gitIn(folder, "config", key, value);
    write(folder, before);
    gitIn(folder, "add", "-A");
    gitIn(folder, "commit", "-q", "-m", "Begin");
    return folder;
  };

  /** Killed when the first file is there and the second is not. */
  function halfDone(): string {
    for (let at = Number(run({ folder: checkout(), apply }).stdout); at > 0; at -= 1) {
      const folder = checkout();
      killedAt(at, { folder, apply });
      if (textsIn(folder)["b.txt"] === "one\n") return folder;
    }
    throw new Error("No point is in the middle.");
  }

  it(
    "is not written over what a person did since: the files are named",
    { timeout: TIMEOUT_MS },
    async () => {
      const folder = halfDone();
      writeFileSync(join(folder, "b.txt"), "mine\n");
      await expect(applyOnBranch(folder, apply)).rejects.toThrow(
        /not wholly in this checkout yet.*\n.*b\.txt/,
      );
      expect(textsIn(folder)["b.txt"]).toBe("mine\n");
      writeFileSync(join(folder, "b.txt"), "one\n");
      expect(await applyOnBranch(folder, apply)).toEqual({ committed: true });
      expect(textsIn(folder)).toEqual(after);
    },
  );

  it("is finished before another change, and that is said", { timeout: TIMEOUT_MS }, async () => {
    const folder = halfDone();
    await expect(applyOnBranch(folder, { ...apply, branch: "other" })).rejects.toThrow(
      /killed while it put longhaul\/x here\. It is finished now/,
    );
    expect(gitIn(folder, "status", "--porcelain", "--branch")).toBe("## longhaul/x");
    expect(textsIn(folder)).toEqual(after);
  });
});

describe("a pull that is killed at any point", () => {
  const REPOSITORY = { ".git/HEAD": "ref: refs/heads/main\n", ".git/config": "[core]\n\tbare = false\n" };
  const files: Texts = {
    ...REPOSITORY,
    ".git/refs/heads/main": `${"1".repeat(40)}\n`,
    "a.txt": "a text\n",
    "deep/er/b.txt": "b text\n",
    "c.txt": "c text\n",
  };
  const all = Object.entries(files).map(([path, text]) => file(path, text));
  const written = ["a.txt", "deep/er/b.txt", "c.txt", ".git/HEAD", ".git/refs/heads/main"];

  it.each([
    ["into a new folder", undefined],
    ["into a folder of other files", { "mine.txt": "mine\n" }],
  ])("%s is completed by the same pull, with its repository", { timeout: TIMEOUT_MS }, async (_, there) => {
    const fresh = () => {
      const folder = join(emptyFolder(), "target");
      if (there !== undefined) write(folder, there);
      return folder;
    };
    for (const at of pointsOf({ folder: fresh(), pull: files })) {
      const folder = fresh();
      killedAt(at, { folder, pull: files });
      for (const path of written.filter((name) => existsSync(join(folder, name))))
        expect(readFileSync(join(folder, path), "utf8"), `${path} at ${at}`).toBe(files[path]);
      expect((await writeWorkspace(all, folder)).untouched, `at ${at}`).toEqual([]);
      for (const path of written) expect(readFileSync(join(folder, path), "utf8")).toBe(files[path]);
      expect(existsSync(join(folder, ".longhaul-new"))).toBe(false);
    }
  });

  it(
    "over run's own copy leaves a whole copy, and the next leaves nothing else",
    { timeout: TIMEOUT_MS },
    async () => {
      const old = { "a.txt": "old\n", "old.txt": "old\n" };
      const scratch = emptyFolder();
      const folder = join(scratch, "copy");
      const again = () => {
        for (const name of readdirSync(scratch)) rmSync(join(scratch, name), { recursive: true });
        write(folder, old);
        return folder;
      };
      const { ".git/config": _, ...rest } = files;
      for (const at of pointsOf({ folder: again(), pull: rest, ours: true })) {
        again();
        killedAt(at, { folder, pull: rest, ours: true });
        const copies = readdirSync(scratch).map((name) => Object.keys(textsIn(join(scratch, name))).length);
        expect(copies, `at ${at}`).toSatisfy((counts: number[]) => counts.some((count) => count >= 2));
        await writeWorkspace(all, folder, { ours: true });
        expect(readdirSync(scratch)).toEqual(["copy"]);
      }
    },
  );
});
