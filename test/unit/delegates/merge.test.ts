import { describe, expect, it } from "vitest";
import { changedPaths, mergeFile, type FileVersion } from "../../../activities/delegates/delegate-files.ts";
import type { ManifestEntry } from "../../../activities/store/workspace-manifest.ts";

const state = (hash: string, mode = 0o644): FileVersion => ({ hash, mode });

it.each<[string, FileVersion, FileVersion, FileVersion, string]>([
  ["is applied if the parent has it unchanged", state("a"), state("b"), state("a"), "take"],
  ["is applied if it is new", undefined, state("b"), undefined, "take"],
  ["is removed if the parent has it unchanged", state("a"), undefined, state("a"), "take"],
  ["is the same if the parent made the same change", state("a"), state("b"), state("b"), "same"],
  ["is the same if both removed it", state("a"), undefined, undefined, "same"],
  ["is left if the parent changed it", state("a"), state("b"), state("c"), "it was changed here meanwhile"],
  ["is left if the parent removed it", state("a"), state("b"), undefined, "it was removed here meanwhile"],
  [
    "is left if both made one",
    undefined,
    state("b"),
    state("c"),
    "a file of that name was made here meanwhile",
  ],
  [
    "is left if removed there, changed here",
    state("a"),
    undefined,
    state("c"),
    "it was changed here meanwhile",
  ],
  [
    "counts as changed by its permissions",
    state("a"),
    state("b"),
    state("a", 0o755),
    "it was changed here meanwhile",
  ],
])("a file that a delegate changed %s", (_, base, child, parent, expected) => {
  const verdict = mergeFile(base, child, parent);
  expect(verdict.kind === "leave" ? verdict.reason : verdict.kind).toBe(expected);
});

describe("the difference of two saves", () => {
  const entry = (path: string, more: Partial<ManifestEntry> = {}): ManifestEntry => ({
    kind: "file",
    path,
    mode: 0o644,
    size: 1,
    mtime: "1",
    ctime: "1",
    target: "",
    ...more,
  });

  it("lists files that are new, gone or may differ, and no others", () => {
    const before = [entry("same"), entry("gone"), entry("touched"), entry("unsure", { ctime: "?" })];
    const after = [
      entry("same"),
      entry("new"),
      entry("touched", { ctime: "2" }),
      entry("unsure", { ctime: "?" }),
    ];
    expect(changedPaths(before, after)).toEqual({ files: ["gone", "new", "touched", "unsure"], left: [] });
  });

  it("lists what cannot be merged, and omits folders", () => {
    const before = [entry("link", { kind: "link", target: "a" }), entry("folder", { kind: "folder" })];
    const after = [
      entry("link", { kind: "link", target: "b" }),
      entry("folder"),
      entry("empty", { kind: "folder" }),
    ];
    const { files, left } = changedPaths(before, after);
    expect(files).toEqual([]);
    expect(left.map(({ path }) => path)).toEqual(["folder", "link"]);
  });
});
