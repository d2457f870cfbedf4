import { execFileSync } from "node:child_process";
import {
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  readlinkSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import fc from "fast-check";
import { beforeEach, describe, expect, it } from "vitest";
import { bytesOfText } from "../../../activities/store/path-text.ts";
import type { WorkspaceFile } from "../../../activities/store/workspace-pack.ts";
import { diffWorkspaces, patchFiles } from "../../../client/workspace/workspace-diff.ts";
import { emptyFolder } from "../../support/empty-folder.ts";
import { file } from "../../support/workspace-file.ts";

let folder: string;
beforeEach(() => {
  folder = emptyFolder();
});

/** The result of `git apply`, by path; undefined if the file is gone. */
function applied(
  before: readonly WorkspaceFile[],
  after: readonly WorkspaceFile[],
  paths: readonly string[],
) {
  const git = (...args: string[]) => execFileSync("git", args, { cwd: folder });
  git("init", "-q");
  for (const entry of before) {
    if (entry.kind === "folder") continue;
    mkdirSync(dirname(join(folder, entry.path)), { recursive: true });
    if (entry.kind === "link") symlinkSync(entry.target, join(folder, entry.path));
    else writeFileSync(join(folder, entry.path), entry.bytes);
  }
  writeFileSync(join(folder, "the.patch"), diffWorkspaces(before, after, { binaries: "bytes" }).patch);
  git("apply", "--check", "the.patch");
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

  it("is empty if nothing changed, and notes modes and binaries", () => {
    const old = [file("x", "1\n"), file("b", Buffer.from([0, 1]))];
    expect(diffWorkspaces(old, old, { binaries: "named" })).toEqual({ patch: "", changed: 0, ignored: [] });
    const { patch, changed } = diffWorkspaces(
      old,
      [file("x", "1\n", 0o755), file("b", Buffer.from([0, 2]))],
      { binaries: "named" },
    );
    expect(changed).toBe(2);
    expect(patch).toContain("old mode 100644\nnew mode 100755\n");
    expect(patch).toContain("Binary files a/b and b/b differ\n");
  });

  it("makes a patch of binaries, links and odd names that git applies, byte for byte", () => {
    const noise = (length: number) =>
      Buffer.from(Array.from({ length }, (_, at) => (at * at * 31 + at * 7) % 256));
    const link = (path: string, to: string): WorkspaceFile => ({
      kind: "link",
      path,
      mode: 0o777,
      target: to,
    });
    const before = [
      file("changed.bin", noise(5_000)),
      file("gone.bin", noise(77)),
      file("text-to-binary", "a\n"),
      file("emptied.bin", noise(9)),
      file("to-link", "a\n"),
      file("folder-next", "a\n"),
      link("to-file", "changed.bin"),
      file("mode.bin", noise(60)),
      file("latin1.txt", Buffer.from("gr\xfc\xdfe\n", "latin1")),
    ];
    const sizes = Array.from({ length: 60 }, (_, at) =>
      file(`sizes/${at}.bin`, Buffer.concat([Buffer.of(0), noise(at)])),
    );
    const after = [
      file("changed.bin", Buffer.concat([noise(4_000), Buffer.of(0, 1), noise(100)])),
      file("text-to-binary", noise(300)),
      file("emptied.bin", ""),
      link("to-link", "changed.bin"),
      file("folder-next/inside.bin", noise(20)),
      file("to-file", noise(20)),
      file("mode.bin", noise(61), 0o755),
      file("latin1.txt", Buffer.from("gr\xfc\xdfer\n", "latin1")),
      file('odd "name\t\u009b\\.bin', noise(30)),
      file("no text \udcff.bin", noise(31)),
      ...sizes,
    ];
    applied(before, after, []);
    for (const entry of after) {
      const path = Buffer.concat([Buffer.from(`${folder}/`), bytesOfText(entry.path)]);
      if (entry.kind === "link") expect(readlinkSync(path)).toBe(entry.target);
      if (entry.kind !== "file") continue;
      expect(readFileSync(path).equals(entry.bytes), entry.path).toBe(true);
      expect(lstatSync(path).mode & 0o111, entry.path).toBe(entry.mode & 0o111);
    }
    expect(existsSync(join(folder, "gone.bin"))).toBe(false);
  });

  it("omits built and fetched files, by .gitignore", () => {
    const after = [file(".gitignore", "dist\n"), file("dist/x", "1"), file("node_modules/y/z", "1")];
    expect(diffWorkspaces([], after, { binaries: "bytes" }).changed).toBe(1);
  });

  it("compares what was there at the start, whatever it is called", () => {
    const before = [file("dist/x", "1"), file("node_modules/y/z", "1"), file("node_modules/gone", "1")];
    const after = [file(".gitignore", "dist\n"), file("dist/x", "2"), file("node_modules/y/z", "2")];
    expect(diffWorkspaces(before, after, { binaries: "bytes" }).changed).toBe(4);
  });
});

describe("a patch by file", () => {
  // What some readers, JavaScript's expressions among them, take for the end of a line: for Git it is content.
  const end = fc.constantFrom("\n", "\r", "\r\n", "\u2028", "\u2029", "\u0085", "\v", "\f");
  const said = fc.constantFrom(
    "diff --git a/SECURITY.md b/SECURITY.md",
    "--- a/SECURITY.md",
    "+++ b/SECURITY.md",
    "@@ -1,1 +1,1 @@",
    "GIT binary patch",
    "Binary files a and b differ",
    "+evil",
    "-good",
    "one",
    "",
  );
  const text = fc
    .array(fc.tuple(said, end), { maxLength: 8 })
    .map((lines) => lines.map((part) => part.join("")).join(""));
  const PATHS = ["a.txt", "b/c d.txt", "e\u2028f"];
  const state = fc.tuple(...PATHS.map(() => fc.option(text, { nil: undefined }))).map((texts) =>
    PATHS.flatMap((path, at) => {
      const content = texts[at];
      return content === undefined ? [] : [file(path, content)];
    }),
  );
  const linesOf = (bytes: Uint8Array | undefined) => String(Buffer.from(bytes ?? [])).split("\n");

  it("names the changed files and no others, whatever is in them, and counts their lines", () => {
    fc.assert(
      fc.property(state, state, (before, after) => {
        const { patch } = diffWorkspaces(before, after, { binaries: "bytes" });
        const files = patchFiles(patch);
        const bytes = (files: readonly { path: string; bytes: Uint8Array }[], path: string) =>
          files.find((one) => one.path === path)?.bytes;
        const changed = PATHS.filter((path) => {
          const [old, fresh] = [bytes(before, path), bytes(after, path)];
          return old === undefined || fresh === undefined ? old !== fresh : !Buffer.from(old).equals(fresh);
        });
        expect(files.map(({ path }) => path)).toEqual(changed);
        expect(files.map((one) => one.text).join("")).toBe(patch);
        for (const { path, added, removed } of files) {
          const grown = linesOf(bytes(after, path)).length - linesOf(bytes(before, path)).length;
          const ends = (content: Uint8Array | undefined) =>
            content === undefined || content.length === 0 || content.at(-1) === 10 ? 0 : 1;
          expect((added ?? 0) - (removed ?? 0)).toBe(
            grown + ends(bytes(after, path)) - ends(bytes(before, path)),
          );
        }
      }),
      { numRuns: 1_000 },
    );
  });
});
