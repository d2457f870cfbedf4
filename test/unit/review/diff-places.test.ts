import { afterAll, expect, describe, it } from "vitest";
import { createGitAccess } from "../../../activities/git/git-access.ts";
import { diffFiles, readHunks, readRaw } from "../../../activities/review/diff-places.ts";
import { emptyFolder } from "../../support/empty-folder.ts";
import { gitIn, makeRemote } from "../../support/remotes.ts";

const access = createGitAccess({ PATH: process.env["PATH"], LONGHAUL_GIT_FOLDER: emptyFolder(afterAll) });
const numbered = (from: number, to: number, change: Readonly<Record<number, string>> = {}) =>
  Array.from({ length: to - from + 1 }, (_, index) => `${change[from + index] ?? from + index}\n`).join("");

describe("the lines that a change's diff shows", () => {
  it("are those of each side, with three around them", () => {
    const diff = `--- a/one
+++ b/one
@@ -2,5 +2,6 @@ in a function
 2
-3
+three
++++ b/four
 4
@@ -20,1 +22,0 @@
-twenty
\\ No newline at end of file
`;
    expect(readHunks(diff)).toEqual([
      { old: 2, new: 2, hunk: 0 },
      { old: 3, new: undefined, hunk: 0 },
      { old: undefined, new: 3, hunk: 0 },
      { old: undefined, new: 4, hunk: 0 },
      { old: 4, new: 5, hunk: 0 },
      { old: 20, new: undefined, hunk: 1 },
    ]);
  });

  it("are of files whatever their names, also of renamed, added and deleted ones", async () => {
    const remote = makeRemote({ "a b": numbered(1, 30), gone: "x\ny\n", "weird\tname": "1\n", same: "1\n" });
    const from = remote.at("main") ?? "";
    remote.commit("change", { "weird\tname": "2\n", new: "1\n2" });
    const clone = emptyFolder();
    gitIn(clone, "clone", "-q", remote.folder, ".");
    gitIn(clone, "checkout", "-q", "change");
    gitIn(clone, "mv", "a b", "ä");
    gitIn(clone, "rm", "-q", "gone");
    gitIn(clone, "commit", "-q", "-m", "Move");
    gitIn(clone, "push", "-q", "origin", "change");
    const to = remote.commit("change", { ä: numbered(1, 30, { 15: "fifteen" }) });
    const paths = new Set(["ä", "a b", "gone", "new", "weird\tname", "same", "../etc"]);
    const files = await diffFiles(access, remote.folder, { from, to }, paths);
    expect([...files.keys()].toSorted()).toEqual(["a b", "gone", "new", "weird\tname", "ä"]);
    const moved = files.get("ä");
    expect(moved).toMatchObject({ oldPath: "a b", newPath: "ä" });
    expect(files.get("a b")).toEqual(moved);
    expect(moved?.lines.map((line) => line.new ?? -(line.old ?? 0))).toEqual([
      12, 13, 14, -15, 15, 16, 17, 18,
    ]);
    expect(files.get("new")?.lines).toEqual([
      { old: undefined, new: 1, hunk: 0 },
      { old: undefined, new: 2, hunk: 0 },
    ]);
    expect(files.get("gone")).toMatchObject({ newPath: "gone", lines: [{ old: 1 }, { old: 2 }] });
  });

  it("are none where git cannot tell", async () => {
    const { folder } = makeRemote();
    const range = { from: "0".repeat(40), to: "1".repeat(40) };
    expect(await diffFiles(access, folder, range, new Set(["README.md"]))).toEqual(new Map());
    expect(readRaw("")).toEqual([]);
    expect(readRaw(":100644 100644 a b M\0")).toEqual([]);
  });
});
