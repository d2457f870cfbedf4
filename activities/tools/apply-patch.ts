import { z } from "zod";
import type { SandboxFiles, FileAnswer } from "../sandbox/sandbox.ts";
import { failure, ToolFailure, typedTool, type ToolContext, type ToolResult } from "./tool.ts";
import { parsePatch, type PatchOperation } from "./patch-parse.ts";
import { type Draft, type FileState, planPatch, operationState, type OperationState } from "./patch-plan.ts";
import { showName } from "./paths.ts";

const input = z.strictObject({
  patch: z.string().min(1).describe("From `*** Begin Patch` to `*** End Patch`."),
});

/** How many times a patch is planned because a file changed between reading and writing. */
const MAX_ROUNDS = 5;

export const applyPatch = typedTool({
  name: "apply_patch",
  description: `Changes several files, or nothing if one part does not fit. Format:
*** Begin Patch
*** Add File: path (of a new file; its lines begin with +)
*** Delete File: path
*** Update File: path
*** Move to: new path (optional)
@@ a line above the change (optional)
 context line (begins with a blank; about 3 before and after)
-removed line
+added line
*** End of File (optional: the change is at its end)
*** End Patch
Paths are relative to /workspace.`,
  input,
  readOnly: false,
  about: ({ patch }) =>
    [...patch.matchAll(/^\s*\*\*\* \w+ File: (.+)$/gm)].map(([, path]) => path).join(", "),
  run,
});

async function run(request: z.infer<typeof input>, context: ToolContext): Promise<ToolResult> {
  const operations = await withPrefix("The patch was not applied.", () => parsePatch(request.patch));
  const { files } = await context.sandbox();
  if (context.resumed) {
    const earlier = await earlierAttempt(files, operations);
    if (earlier !== undefined) return earlier;
  }
  let trouble = "";
  for (let round = 0; round < MAX_ROUNDS; round += 1) {
    context.signal.throwIfAborted();
    const plan = await withPrefix("The patch was not applied; no file was changed.", () =>
      planPatch(files, operations),
    );
    const written = await writeAll(files, plan.files);
    if (written.ok) return { text: `Applied:\n${plan.summary.join("\n")}` };
    if (!written.restored) return failure(written.message);
    trouble = written.message;
    if (!written.changed) break;
  }
  return failure(`The patch was not applied; all files are as they were. ${trouble}`);
}

/** @throws ToolFailure of the body, with the prefix added */
async function withPrefix<T>(prefix: string, body: () => T | Promise<T>): Promise<T> {
  try {
    return await body();
  } catch (error) {
    throw error instanceof ToolFailure ? new ToolFailure(`${prefix} ${error.message}`) : error;
  }
}

type WriteOutcome =
  | { readonly ok: true }
  | { readonly ok: false; readonly changed: boolean; readonly restored: boolean; readonly message: string };

/** Writes all files, new contents first and irreversible changes last; undoes its writes if one fails. */
async function writeAll(files: SandboxFiles, planned: readonly Draft[]): Promise<WriteOutcome> {
  const todo = planned.toSorted((left, right) => turnOf(left) - turnOf(right));
  const written: Draft[] = [];
  for (const file of todo) {
    const answer = await applyDraft(files, file);
    if (answer.ok) {
      written.push(file);
      continue;
    }
    const unrestored = await takeBack(files, written);
    const message = `${answer.message}${unrestored.length === 0 ? "" : `. These were changed and could not be restored: ${unrestored.map(showName).join(", ")}.`}`;
    const changed = ["changed", "exists", "not-found"].includes(answer.reason);
    return { ok: false, changed, restored: unrestored.length === 0, message };
  }
  return { ok: true };
}

function turnOf({ before, after }: Draft): number {
  if (after !== undefined) return 0;
  return before?.bytes === undefined ? 2 : 1;
}

async function applyDraft(files: SandboxFiles, { path, after, before }: Draft): Promise<FileAnswer<object>> {
  if (after?.bytes === undefined)
    return files.remove(path, before?.hash === undefined ? {} : { ifHash: before.hash });
  return files.write(path, after.bytes, { ifHash: before?.hash ?? null, ...modeOf(after) });
}

async function takeBack(files: SandboxFiles, drafts: readonly Draft[]): Promise<string[]> {
  const unrestored: string[] = [];
  for (const { path, before } of drafts.toReversed()) {
    if (!(await restore(files, path, before))) unrestored.push(path);
  }
  return unrestored;
}

async function restore(files: SandboxFiles, path: string, before: FileState | undefined): Promise<boolean> {
  if (before === undefined) return (await files.remove(path)).ok;
  if (before.bytes === undefined) return false;
  return (await files.write(path, before.bytes, modeOf(before))).ok;
}

function modeOf({ mode }: FileState): { readonly mode?: number } {
  return mode === undefined ? {} : { mode };
}

/** How far an earlier attempt got: nothing, everything (the files show both), or an unknown part. */
async function earlierAttempt(
  files: SandboxFiles,
  operations: readonly PatchOperation[],
): Promise<ToolResult | undefined> {
  const states: OperationState[] = [];
  for (const operation of operations) states.push(await operationState(files, operation));
  if (states.every((state) => state === "to do")) return undefined;
  const listed = operations
    .map((operation, index) => `${showName(operation.path)}: ${states[index]}`)
    .join("\n");
  if (states.every((state) => state === "done")) {
    return { text: `Applied by an attempt before a restart (checked):\n${listed}` };
  }
  return {
    unknown: true,
    text: `A restart interrupted this call: it is not known whether the whole patch was applied. The files now:\n${listed}\nRead them before you patch again.`,
  };
}
