import { z } from "zod";
import { writeText } from "../text/encoding.ts";
import type { SandboxFiles } from "../sandbox/sandbox.ts";
import {
  changeView,
  applyEdit,
  type EditOutcome,
  type EditRequest,
  type MatchKind,
  omissionLine,
} from "./text-match.ts";
import { accepted, failure, typedTool, type ToolContext, type ToolResult } from "./tool.ts";
import { oneLine, showName, workspacePath } from "./paths.ts";
import { byLook } from "./real-path.ts";
import { readTextFile } from "./text-file.ts";

const input = z.strictObject({
  path: z.string(),
  old_string: z.string().min(1).describe("The text as it is in the file, without line numbers."),
  new_string: z.string(),
  replace_all: z.boolean().optional(),
});

/** Each round of parallel edits to one file lets one succeed, so this many may run at once. */
const MAX_ROUNDS = 20;

export const editFile = typedTool({
  name: "edit_file",
  description:
    "Replaces text in a file. old_string must match exactly one place, unless replace_all is set: include enough lines " +
    "around it. Only trailing blanks, line ends, uniform indentation and typographic characters may differ. For several edits use apply_patch.",
  input,
  readOnly: false,
  about: (edit) => edit.path,
  run,
});

async function run(edit: z.infer<typeof input>, context: ToolContext): Promise<ToolResult> {
  const where = workspacePath(edit.path);
  if (edit.old_string === edit.new_string) {
    return failure("old_string and new_string are the same: there is nothing to change.");
  }
  const omission = omissionLine(edit.new_string, edit.old_string);
  if (omission !== undefined) {
    return failure(
      `new_string has the line "${oneLine(omission, 100)}", which stands for text that was left out: the edit would delete that text. Nothing was changed. Write the text out, or edit a smaller piece.`,
    );
  }
  const { files } = await context.sandbox();
  const request = {
    oldString: edit.old_string,
    newString: edit.new_string,
    replaceAll: edit.replace_all === true,
  };
  for (let round = 0; round < MAX_ROUNDS; round += 1) {
    context.signal.throwIfAborted();
    const result = await tryEdit(files, where.relative, request, context.resumed);
    if (result !== undefined) return result;
  }
  return failure(
    `${showName(where.relative)} kept changing while it was edited: nothing was changed. Read it and try again.`,
  );
}

/** @returns undefined if another writer changed the file meanwhile */
async function tryEdit(
  files: SandboxFiles,
  inputPath: string,
  request: EditRequest,
  resumed: boolean,
): Promise<ToolResult | undefined> {
  const file = await byLook(files, inputPath, (at) => readTextFile(files, at));
  const { path, remark } = file;
  const { text, form, hash } = accepted(file.answer, { "not-found": "To make a new file use write_file." });
  const name = showName(path);
  if (resumed) {
    const earlier = earlierAttempt(name, text, request);
    if (earlier !== undefined) return earlier;
  }
  const outcome = applyEdit(text, request);
  if (outcome.kind !== "edited") return failure(mismatch(name, outcome, request.oldString));
  if (outcome.text === text) return failure(`The edit does not change ${name}: nothing was written.`);
  const written = await files.write(path, writeText(outcome.text, form), { ifHash: hash });
  // `not-found`: removed between reading and writing; the next round reports that.
  if (!written.ok && (written.reason === "changed" || written.reason === "not-found")) return undefined;
  accepted(written);
  const matchNote = outcome.count === 1 ? "" : ` in ${outcome.count} places`;
  const lines = [
    `Edited ${name}${matchNote}${BRIDGED[outcome.how]}.`,
    remark,
    changeView(text, outcome.text),
  ];
  return { text: lines.filter((line) => line !== undefined).join("\n") };
}

/** Whether an earlier attempt already applied the edit: an edit is never applied twice. */
function earlierAttempt(name: string, text: string, request: EditRequest): ToolResult | undefined {
  const { oldString, newString } = request;
  if (newString === "" || !text.includes(newString)) return undefined;
  if (!text.includes(oldString)) {
    return { text: `Edited ${name} (done by an attempt before a restart; checked).` };
  }
  // The old text occurs only inside the new one: the edit was applied already, or the file was like this before. That
  // is unknown.
  if (newString.includes(oldString) && !text.replaceAll(newString, "").includes(oldString)) {
    return {
      unknown: true,
      text: `A restart interrupted this call: it is not known whether ${name} was edited already. It contains new_string now. Read that place before you edit it again.`,
    };
  }
  return undefined;
}

const BRIDGED: Readonly<Record<MatchKind, string>> = {
  exact: "",
  indentation: " (old_string matched after an indentation shift, which was applied to new_string too)",
  "trailing-blanks": " (old_string matched except for trailing blanks)",
  characters:
    " (old_string matched except for typographic quotes, dashes or blanks; what new_string does not change keeps the file's own)",
};

function mismatch(
  name: string,
  outcome: Exclude<EditOutcome, { kind: "edited" }>,
  oldString: string,
): string {
  if (outcome.kind === "many-matches") {
    const { lines } = outcome;
    const firstLines = lines.slice(0, 20).join(", ");
    return `old_string has ${lines.length} matches in ${name}, at lines ${firstLines}${lines.length > 20 ? ", …" : ""}: nothing was changed. Add lines around it until it is unique, or set replace_all.`;
  }
  const numbered = oldString.split("\n").every((line) => /^\s*\d+\t/.test(line) || line === "");
  const hints = numbered ? ["Leave out the line numbers that read_file puts before each line."] : [];
  if (outcome.nearLines.length > 0) {
    hints.push(
      `Its first line is at line ${outcome.nearLines.slice(0, 5).join(", ")}, but the lines after it differ.`,
    );
  }
  hints.push("Read the file and copy its current text.");
  return `old_string has 0 matches in ${name}: nothing was changed. ${hints.join(" ")}`;
}
