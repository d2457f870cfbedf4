/** What a session changed in its initial files, as last saved. */
import { readWorkspace } from "../../activities/store/checkpoints.ts";
import type { Store } from "../../activities/store/db.ts";
import { notPossible } from "../console/errors.ts";
import { diffWorkspaces } from "./workspace-diff.ts";

/** @throws ClientError (impossible) if nothing was ever saved */
export async function sessionDiff(store: Store, id: string) {
  const after = await readWorkspace(store.db, id);
  if (after === undefined) throw notPossible(`No files of ${id} have been saved yet.`);
  const before = (await readWorkspace(store.db, id, { atStep: 0 })) ?? [];
  return diffWorkspaces(before, after, { binaries: "bytes" });
}
