/** What an attempt of a patch whose outcome is unknown has done. */
import type { SandboxFiles } from "../sandbox/sandbox.ts";
import { applyChunks, reversed } from "./patch-apply.ts";
import type { PatchOperation } from "./patch-parse.ts";
import { workspacePath } from "./paths.ts";
import { filesView, realPlace } from "./real-place.ts";
import { readTextFile } from "./text-file.ts";

export type OperationState = "to do" | "done" | "not clear";

/** The state of one operation, as the files show it. */
export async function operationState(
  files: SandboxFiles,
  operation: PatchOperation,
): Promise<OperationState> {
  const find = (given: string) =>
    realPlace(filesView(files), workspacePath(given).relative, { byLook: true });
  const read = async (file: string | undefined): Promise<string | undefined> => {
    if (file === undefined) return undefined;
    const answer = await readTextFile(files, file);
    return answer.ok ? answer.text : undefined;
  };
  const place = await find(operation.path);
  // A file that is not text still exists.
  if (operation.kind === "delete") return place.kind === undefined ? "done" : "to do";
  const now = await read(place.content);
  if (operation.kind === "add") {
    if (place.kind === undefined) return "to do";
    return now === operation.text ? "done" : "not clear";
  }
  const { chunks, moveTo } = operation;
  const aim = moveTo === undefined ? place : await find(moveTo);
  const isMove = aim.kind === undefined ? moveTo !== undefined : aim.content !== place.content;
  if (isMove && place.kind !== undefined) {
    // Written there and not yet removed here?
    const planned = now === undefined ? undefined : applyChunks(now, chunks);
    return planned?.ok === true && planned.text === (await read(aim.content)) ? "not clear" : "to do";
  }
  const fits = (text: string | undefined, lines: typeof chunks) =>
    text !== undefined && applyChunks(text, lines).ok;
  if (isMove) return fits(await read(aim.content), reversed(chunks)) ? "done" : "not clear";
  const isToDo = fits(now, chunks);
  if (isToDo === fits(now, reversed(chunks))) return "not clear";
  return isToDo ? "to do" : "done";
}
