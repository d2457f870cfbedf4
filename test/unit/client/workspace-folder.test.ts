import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { readFolder } from "../../../client/workspace-folder.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "longhaul-folder-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const put = (path: string, text = "") => {
  mkdirSync(dirname(join(folder, path)), { recursive: true });
  writeFileSync(join(folder, path), text);
};

it("takes files as .gitignore has them, nested ones too, without node_modules", async () => {
  put(".gitignore", "*.log\n/build/\n");
  put("a.log");
  put("build/x");
  put("sub/build/kept");
  put("sub/.gitignore", "!keep.log\nsecret\n");
  put("sub/keep.log");
  put("sub/secret");
  put("node_modules/p/index.js");
  put(".git/HEAD", "ref: refs/heads/main\n");
  symlinkSync("a", join(folder, "link"));
  const { files } = await readFolder(folder);
  expect(files.filter(({ kind }) => kind !== "folder").map(({ path }) => path)).toEqual([
    ".git/HEAD",
    ".gitignore",
    "link",
    "sub/.gitignore",
    "sub/build/kept",
    "sub/keep.log",
  ]);
});

it("takes AGENTS.md as instructions, at most 32 KiB of it", async () => {
  put("AGENTS.md", "ä".repeat(40_000));
  const { instructions } = await readFolder(folder);
  expect(instructions).toBe("ä".repeat(16_384));
});

it("refuses what is no folder as wrong usage", async () => {
  put("file");
  for (const path of ["none", "file"]) {
    await expect(readFolder(join(folder, path))).rejects.toMatchObject({ exitCode: 2 });
  }
});
