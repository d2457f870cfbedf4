/** Folders whose repository is not a whole `.git` below them: what the sandbox gets is whole, or said to be without history. */
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { beforeEach, describe, expect, it } from "vitest";
import { packWorkspace, readChain } from "../../../activities/store/workspace-pack.ts";
import { bytesOfText } from "../../../activities/store/path-text.ts";
import { readFolder } from "../../../client/workspace/workspace-folder.ts";
import { chainOf } from "../../support/chain-of.ts";
import { emptyFolder } from "../../support/empty-folder.ts";
import { gitIn } from "../../support/remotes.ts";

let base: string;
let main: string;
beforeEach(() => {
  base = emptyFolder();
  main = join(base, "main");
  mkdirSync(main);
  gitIn(main, "init", "-q", "-b", "main");
  for (const text of ["one\n", "two\n"]) {
    writeFileSync(join(main, "a.txt"), text);
    gitIn(main, "add", "-A");
    gitIn(main, "commit", "-q", "-m", text.trim());
  }
});

/** What the sandbox would get, on disk. */
async function copied(
  folder: string,
): Promise<{ readonly folder: string; readonly notes: readonly string[] }> {
  const { files, notes } = await readFolder(folder);
  const place = emptyFolder();
  const { entries, bytes } = await readChain(chainOf(await packWorkspace(files)));
  for (const entry of entries) {
    const at = Buffer.concat([Buffer.from(`${place}/`), bytesOfText(entry.path)]);
    if (entry.kind === "folder") mkdirSync(at, { recursive: true });
    if (entry.kind === "file") {
      mkdirSync(dirname(at.toString("latin1")), { recursive: true });
      writeFileSync(at, bytes.get(entry.path) ?? "");
    }
    if (entry.kind === "link") symlinkSync(entry.target, at);
  }
  return { folder: place, notes };
}

const whole: Readonly<Record<string, () => string>> = {
  "a linked worktree": () => {
    gitIn(main, "worktree", "add", "-q", "-b", "side", join(base, "place"));
    return join(base, "place");
  },
  "a detached worktree of a bare repository": () => {
    gitIn(base, "clone", "-q", "--bare", main, "bare.git");
    gitIn(join(base, "bare.git"), "worktree", "add", "-q", "--detach", join(base, "place"));
    return join(base, "place");
  },
  "a clone with a separate folder": () => {
    gitIn(base, "clone", "-q", "--separate-git-dir", join(base, "sep"), main, "place");
    return join(base, "place");
  },
  "a .git that is a link": () => {
    gitIn(base, "clone", "-q", main, "place");
    execFileSync("mv", [join(base, "place/.git"), join(base, "away")]);
    symlinkSync("../away", join(base, "place/.git"));
    return join(base, "place");
  },
  "a submodule that is opened alone": () => {
    gitIn(base, "init", "-q", "super");
    gitIn(join(base, "super"), "-c", "protocol.file.allow=always", "submodule", "add", "-q", main, "place");
    return join(base, "super/place");
  },
  "a clone --shared": () => {
    gitIn(base, "clone", "-q", "--shared", main, "place");
    return join(base, "place");
  },
  "a clone --reference with own commits, twice removed": () => {
    gitIn(base, "clone", "-q", "--shared", main, "between");
    gitIn(base, "clone", "-q", "--reference", join(base, "between"), main, "place");
    gitIn(join(base, "place"), "commit", "-q", "--allow-empty", "-m", "own");
    return join(base, "place");
  },
  "a linked worktree of a clone --shared": () => {
    gitIn(base, "clone", "-q", "--shared", main, "between");
    gitIn(join(base, "between"), "worktree", "add", "-q", join(base, "place"));
    return join(base, "place");
  },
  "a shallow clone": () => {
    gitIn(base, "clone", "-q", "--depth=1", `file://${main}`, "place");
    return join(base, "place");
  },
  "a branch named like a folder that is left out": () => {
    gitIn(main, "checkout", "-q", "-b", "node_modules/x");
    return main;
  },
};

describe("a folder's history", () => {
  it.each(Object.entries(whole))("goes along whole: %s", async (_, make) => {
    const from = make();
    writeFileSync(join(from, "staged"), "s\n");
    gitIn(from, "add", "staged");
    const { folder } = await copied(from);
    gitIn(folder, "fsck", "--strict");
    expect(gitIn(folder, "log", "--format=%H %s")).toBe(gitIn(from, "log", "--format=%H %s"));
    expect(gitIn(folder, "status", "--porcelain", "--branch")).toBe(
      gitIn(from, "status", "--porcelain", "--branch"),
    );
    expect(existsSync(join(folder, ".git/objects/info/alternates"))).toBe(false);
  });

  it("takes nothing else of the repository that it borrows from", async () => {
    gitIn(main, "checkout", "-q", "-b", "private");
    writeFileSync(join(main, "secret"), "s");
    gitIn(main, "add", "-A");
    gitIn(main, "commit", "-q", "-m", "private");
    const secret = gitIn(main, "rev-parse", "HEAD");
    gitIn(main, "checkout", "-q", "main");
    gitIn(base, "init", "-q", "place");
    writeFileSync(join(base, "place/.git/objects/info/alternates"), `${main}/.git/objects\n`);
    gitIn(join(base, "place"), "reset", "-q", "--hard", gitIn(main, "rev-parse", "main"));
    const { folder } = await copied(join(base, "place"));
    expect(() => gitIn(folder, "cat-file", "-e", secret)).toThrow();
  });

  it("is said to be missing of a partial clone, which has only a part of it", async () => {
    gitIn(main, "config", "uploadpack.allowFilter", "true");
    gitIn(base, "clone", "-q", "--filter=blob:none", `file://${main}`, "place");
    const { folder, notes } = await copied(join(base, "place"));
    expect(existsSync(join(folder, ".git"))).toBe(false);
    expect(notes).toEqual([expect.stringMatching(/^\.git is a partial clone, .* without its history/)]);
    expect(readFileSync(join(folder, "a.txt"), "utf8")).toBe("two\n");
  });

  it("is said to be missing if its .git leads nowhere, and where it is if that is elsewhere", async () => {
    const place = whole["a linked worktree"]?.() ?? "";
    expect((await copied(place)).notes).toEqual([
      `The history in .git is that of ${main}/.git, and goes along.`,
    ]);
    rmSync(join(main, ".git"), { recursive: true });
    expect((await copied(place)).notes).toEqual([expect.stringMatching(/^\.git: leads to no repository/)]);
  });

  it("that borrows what is gone is refused, with Git's words", async () => {
    const place = whole["a clone --shared"]?.() ?? "";
    rmSync(join(main, ".git"), { recursive: true });
    await expect(readFolder(place)).rejects.toMatchObject({
      exitCode: 2,
      message: expect.stringMatching(/borrows objects from another one, and they cannot be read: .*/s),
    });
  });

  it("is read without any program that the repository names", async () => {
    const place = whole["a clone --shared"]?.() ?? "";
    const mark = join(base, "mark");
    const program = join(base, "program");
    writeFileSync(program, `#!/bin/sh\ntouch ${mark}\n`, { mode: 0o755 });
    for (const key of [
      "core.fsmonitor",
      "core.sshCommand",
      "core.alternateRefsCommand",
      "core.pager",
      "uploadpack.packObjectsHook",
    ])
      gitIn(place, "config", key, program);
    writeFileSync(join(place, ".git/hooks/post-index-change"), `#!/bin/sh\ntouch ${mark}\n`, { mode: 0o755 });
    await readFolder(place);
    expect(existsSync(mark)).toBe(false);
  });
});

it("what Git tracks goes along whatever ignore rules say, and nothing else that is ignored", async () => {
  const put = (path: string) => {
    mkdirSync(dirname(join(main, path)), { recursive: true });
    writeFileSync(join(main, path), path);
  };
  for (const path of ["node_modules/dep/index.js", "dist/app.js", "x.local.json", "sub/node_modules/a/b"])
    put(path);
  put(".gitignore");
  writeFileSync(join(main, ".gitignore"), "dist/\n*.local.json\n");
  gitIn(main, "init", "-q", "inner");
  put("inner/node_modules/own.js");
  gitIn(join(main, "inner"), "add", "-f", "-A");
  gitIn(main, "add", "-f", "node_modules", "dist", "x.local.json", "sub", ".gitignore");
  gitIn(main, "commit", "-q", "-m", "odd");
  for (const path of ["node_modules/dep/built.js", "node_modules/other/x", "dist/new.js", "y.local.json"])
    put(path);
  const { folder } = await copied(main);
  expect(gitIn(folder, "status", "--porcelain")).toBe("?? inner/");
  expect(gitIn(join(folder, "inner"), "status", "--porcelain")).toBe("A  node_modules/own.js");
  const all = gitIn(folder, "status", "--porcelain", "--ignored");
  expect(all.split("\n").filter((line) => line.startsWith("!!"))).toEqual([]);
});

it("a name that is not UTF-8 goes along, byte for byte", async () => {
  const name = Buffer.from("caf\xe9.txt", "latin1");
  writeFileSync(Buffer.concat([Buffer.from(`${main}/`), name]), "coffee");
  mkdirSync(Buffer.concat([Buffer.from(`${main}/`), Buffer.from("d\xff", "latin1")]));
  gitIn(main, "add", "-A");
  gitIn(main, "commit", "-q", "-m", "odd");
  const { folder } = await copied(main);
  expect(gitIn(folder, "status", "--porcelain")).toBe("");
  expect(readFileSync(Buffer.concat([Buffer.from(`${folder}/`), name]), "utf8")).toBe("coffee");
});
