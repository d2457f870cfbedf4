/** Repositories whose configuration and hooks run programs, and commands that a prompt or an editor runs in them. */
import { execFileSync } from "node:child_process";
import {
  chmodSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { WorkspaceFile } from "../../activities/store/workspace-pack.ts";

const scratch = mkdtempSync(join(tmpdir(), "longhaul-hostile-"));
const markers = join(scratch, "markers");
mkdirSync(markers);

/** Names of the programs that have run since the last reset. */
export const programsRun = (): string[] => readdirSync(markers);

export function forgetProgramsRun(): void {
  for (const name of readdirSync(markers)) rmSync(join(markers, name));
}

export const removeHostile = () => rmSync(scratch, { recursive: true, force: true });

/** Git as a prompt or an editor runs it: with no settings but the repository's. Never fails. */
export function git(cwd: string, ...args: string[]): string {
  const environment = {
    PATH: process.env["PATH"],
    HOME: scratch,
    GIT_CONFIG_NOSYSTEM: "1",
    GIT_TERMINAL_PROMPT: "0",
    GIT_EDITOR: "true",
    ...Object.fromEntries(
      ["AUTHOR", "COMMITTER"].flatMap((who) => [
        [`GIT_${who}_NAME`, "a"],
        [`GIT_${who}_EMAIL`, "a@b.c"],
      ]),
    ),
  };
  try {
    return execFileSync("git", args, {
      cwd,
      env: environment,
      encoding: "utf8",
      stdio: "pipe",
      timeout: 5_000,
    });
  } catch (error) {
    const { stdout = "", stderr = "" } = error as { stdout?: string; stderr?: string };
    return stdout + stderr;
  }
}

/** A program that leaves a mark when it is run. */
function trap(name: string): string {
  const path = join(scratch, "traps", name);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(
    path,
    `#!/bin/sh\ntouch ${join(markers, name)}\n${/clean|smudge|pager/.test(name) ? "cat" : ""}\n`,
  );
  chmodSync(path, 0o755);
  return path;
}

export function trappedConfig(of: string): string {
  return [
    "[core]",
    "\trepositoryformatversion = 0",
    "\tbare = false",
    `\tfsmonitor = ${trap(`${of}-fsmonitor`)}`,
    `\tsshCommand = ${trap(`${of}-ssh`)}`,
    `\tpager = ${trap(`${of}-pager`)}`,
    `\teditor = ${trap(`${of}-editor`)}`,
    "[include]",
    "\tpath = included",
    '[filter "x"]',
    `\tclean = ${trap(`${of}-clean`)}`,
    `\tsmudge = ${trap(`${of}-smudge`)}`,
    '[diff "x"]',
    `\ttextconv = ${trap(`${of}-textconv`)}`,
    "[credential]",
    `\thelper = ${trap(`${of}-credential`)}`,
    "[alias]",
    `\tst = !${trap(`${of}-alias`)}`,
    '[remote "origin"]',
    "\turl = ssh://git@127.0.0.1:1/x",
    "",
  ].join("\n");
}

/** The files of a folder as a session saves them. */
function filesOf(root: string, below = ""): WorkspaceFile[] {
  return readdirSync(join(root, below)).flatMap((name): WorkspaceFile[] => {
    const path = below === "" ? name : `${below}/${name}`;
    const full = join(root, path);
    const stat = lstatSync(full);
    const mode = stat.mode & 0o777;
    if (stat.isSymbolicLink()) return [{ kind: "link", path, mode, target: readlinkSync(full) }];
    if (stat.isDirectory()) return [{ kind: "folder", path, mode }, ...filesOf(root, path)];
    return [{ kind: "file", path, mode, bytes: readFileSync(full), mtimeMs: stat.mtimeMs }];
  });
}

/** A repository with a submodule, a nested one and a bare one, all of which run programs whenever Git reads them. */
export function hostileWorkspace(): WorkspaceFile[] {
  const root = join(scratch, "session");
  const lib = join(scratch, "lib");
  for (const path of [root, lib]) {
    mkdirSync(path);
    git(path, "init", "-q", "-b", "main");
    writeFileSync(join(path, "a.txt"), "one\n");
    writeFileSync(join(path, ".gitattributes"), "*.txt filter=x diff=x\n");
    git(path, "add", ".");
    git(path, "commit", "-qm", "first");
  }
  git(root, "-c", "protocol.file.allow=always", "submodule", "add", "-q", lib, "lib");
  git(root, "commit", "-qm", "second");
  git(root, "clone", "-q", "--bare", lib, "bare");
  git(root, "clone", "-q", lib, "nested");
  const repositories = { main: ".git", module: ".git/modules/lib", nested: "nested/.git", bare: "bare" };
  for (const [name, path] of Object.entries(repositories)) {
    const repository = join(root, path);
    const config = trappedConfig(name);
    const worktree = name === "bare" ? `[core]\n\tworktree = ..\n` : "";
    writeFileSync(join(repository, "config"), config + worktree);
    writeFileSync(join(repository, "included"), `[core]\n\tfsmonitor = ${trap(`${name}-included`)}\n`);
    for (const hook of ["pre-commit", "post-checkout", "post-index-change", "reference-transaction"]) {
      writeFileSync(join(repository, "hooks", hook), readFileSync(trap(`${name}-hook`)));
      chmodSync(join(repository, "hooks", hook), 0o755);
    }
  }
  writeFileSync(join(root, "a.txt"), "two\n");
  writeFileSync(join(root, "lib/a.txt"), "two\n");
  return filesOf(root);
}

/** What prompts, editors and people run in such folders. */
export function lookAround(root: string): void {
  for (const folder of ["", "lib", "nested", "bare"]) {
    const cwd = join(root, folder);
    git(cwd, "status");
    git(cwd, "diff");
    git(cwd, "--paginate", "log", "-p");
    git(cwd, "st");
    git(cwd, "add", "a.txt");
    git(cwd, "commit", "-qm", "mine");
    git(cwd, "checkout", "-q", "-b", "mine");
    git(cwd, "fetch");
  }
}
