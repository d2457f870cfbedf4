/** A workspace's save as a value, for tests. The product passes it on to the store. */
import { keepWorkspace, type WorkspaceBase } from "../../activities/workspace/workspace.ts";
import type { CommandSandbox } from "../../activities/sandbox/own-command.ts";
import { buffer } from "node:stream/consumers";
import { Readable } from "node:stream";

export const saveWorkspace = (
  sandbox: CommandSandbox,
  latest: WorkspaceBase | undefined,
  { base }: { readonly base: WorkspaceBase | undefined } = { base: latest },
) =>
  keepWorkspace(sandbox, { latest, base }, async ({ saved, ...save }) => ({
    ...save,
    saved: saved && { ...saved, pack: await buffer(Readable.from(saved.pack.pieces())) },
  }));
