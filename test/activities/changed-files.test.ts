/** What a delegate's saves say that it changed. */
import { gzipSync } from "node:zlib";
import { expect, it } from "vitest";
import { changedFiles } from "../../activities/delegates/delegate-files.ts";
import { latestCheckpoint, saveCheckpoint } from "../../activities/store/checkpoints.ts";
import { createSession } from "../../activities/store/sessions.ts";
import { packWorkspace } from "../../activities/store/workspace-pack.ts";
import { resolveConfig } from "../../client/config/config.ts";
import { useDatabase } from "../support/test-database.ts";
import { file } from "../support/workspace-file.ts";

const database = useDatabase();

it("a file that grew beyond what a save holds was not removed; one that is gone was", async () => {
  const { db } = database.store;
  const workspace = await packWorkspace([file("grown.bin"), file("gone.txt"), file("kept.txt")]);
  await createSession(database.store, {
    id: "child",
    task: "t",
    config: resolveConfig({}, {}, "/").run,
    workspace,
  });
  const base = await latestCheckpoint(db, "child");
  const { manifest, pack } = await packWorkspace([file("kept.txt", "new\n")]);
  // As agent/workspace/tree.py writes it.
  const missing = gzipSync("x 0 0  grown.bin\0too-large\0");
  const last = { manifest: Buffer.concat([manifest, missing]), pack, whole: true, base };
  await saveCheckpoint(db, { sessionId: "child", epoch: 1, step: 1, ...last });
  const { files } = await changedFiles(db, "child", base?.id);
  expect(files.map(({ path, child }) => [path, child === undefined])).toEqual([
    ["gone.txt", true],
    ["kept.txt", false],
  ]);
});
