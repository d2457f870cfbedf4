/** A workspace's save as a value, for tests. The product passes it on to the store. */
import {
  keepWorkspace,
  type WorkspaceBase,
  type WorkspaceSave,
} from "../../activities/workspace/workspace.ts";
import type { CommandSandbox } from "../../activities/sandbox/own-command.ts";

export const saveWorkspace = (
  sandbox: CommandSandbox,
  latest: WorkspaceBase | undefined,
  { base }: { readonly base: WorkspaceBase | undefined } = { base: latest },
): Promise<WorkspaceSave> => keepWorkspace(sandbox, latest, base, (save) => save);
