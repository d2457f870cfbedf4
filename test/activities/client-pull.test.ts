import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { beforeAll, beforeEach, expect, it } from "vitest";
import { latestCheckpoint, saveCheckpoint } from "../../activities/store/checkpoints.ts";
import { packWorkspace } from "../../activities/store/workspace-pack.ts";
import { createSession } from "../../activities/store/sessions.ts";
import { resolveConfig } from "../../client/config/config.ts";
import { pullWorkspace, sessionDiff } from "../../client/workspace/pull-workspace.ts";
import { useDatabase } from "../support/test-database.ts";
import { emptyFolder } from "../support/empty-folder.ts";
import { file } from "../support/workspace-file.ts";

const database = useDatabase();
let folder: string;
beforeAll(async () => {
  await createSession(database.store, {
    id: "pulled",
    task: "t",
    config: resolveConfig({}, {}, "/").run,
    workspace: await packWorkspace([
      file("sub/a.txt", "new"),
      { kind: "link", path: "out", mode: 0o777, target: "/etc/passwd" },
      { kind: "link", path: "up", mode: 0o777, target: "../x" },
      { kind: "link", path: "in", mode: 0o777, target: "sub/a.txt" },
    ]),
  });
});
beforeEach(() => {
  folder = emptyFolder();
});

it("writes the files, and leaves out links that lead out of the folder", async () => {
  const pulled = await pullWorkspace(database.store, "pulled", folder);
  expect(pulled).toEqual({ files: 2, skipped: ["out", "up"], unsafe: [], untouched: [], lacking: [] });
  expect(readFileSync(join(folder, "in"), "utf8")).toBe("new");
  expect(existsSync(join(folder, "out"))).toBe(false);
  await pullWorkspace(database.store, "pulled", folder, { force: true });
});

it("takes what the last save could not hold for no removal, and says so", async () => {
  const workspace = await packWorkspace([file("big/a.bin", "A"), file("gone.txt"), file("kept.txt")]);
  await createSession(database.store, {
    id: "partly",
    task: "t",
    config: resolveConfig({}, {}, "/").run,
    workspace,
  });
  const base = await latestCheckpoint(database.store.db, "partly");
  const last = await packWorkspace([
    file("kept.txt", "new\n"),
    file("sub/.gitattributes", "*.bat eol=crlf\n"),
  ]);
  // As agent/workspace/tree.py writes it: a second gzip member.
  const missing = gzipSync("x 0 0  big\0too-many\0x 0 0  .git\0repository\0");
  const manifest = Buffer.concat([last.manifest, missing]);
  await saveCheckpoint(database.store.db, {
    sessionId: "partly",
    epoch: 1,
    step: 1,
    whole: true,
    base,
    pack: last.pack,
    manifest,
  });
  const { patch, changed, notes, isFiltered } = await sessionDiff(database.store, {
    id: "partly",
    status: "active",
    endedAt: null,
  });
  expect([changed, isFiltered]).toEqual([3, true]);
  expect(patch).not.toContain("big/a.bin");
  expect(notes).toEqual([
    "Not in the saved files as the session left them: big (too many for a save).",
    expect.stringMatching(/: \.git \(a repository's history, which is saved whole or not at all/),
  ]);
  expect((await pullWorkspace(database.store, "partly", folder))?.lacking).toEqual(notes);
});

it("says if nothing was ever saved", async () => {
  expect(await pullWorkspace(database.store, "no-such-session", folder)).toBeUndefined();
  const diff = (status: "active" | "failed", endedAt: Date | null) =>
    sessionDiff(database.store, { id: "empty", status, endedAt });
  await expect(diff("active", null)).rejects.toThrow("No files of empty have been saved yet.");
  await expect(diff("failed", new Date())).rejects.toThrow(
    "empty ended (failed) before any of its files was saved.",
  );
});
