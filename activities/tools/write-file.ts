import { z } from "zod";
import { type FoundText, readText } from "../text/encoding.ts";
import type { FileAnswer, SandboxFiles } from "../sandbox/sandbox.ts";
import { countLines } from "../text/cut.ts";
import { accepted, failure, typedTool, type ToolContext, type ToolResult } from "./tool.ts";
import { omissionLine } from "./text-match.ts";
import { oneLine, showName, showSize, workspacePath } from "./paths.ts";
import { byLook } from "./real-path.ts";
import { readWholeFile, rewritten } from "./text-file.ts";

const input = z.strictObject({
  path: z.string(),
  content: z.string(),
});

/** Enough to see how a large file is encoded. */
const HEAD_BYTES = 1_048_576;

export const writeFile = typedTool({
  name: "write_file",
  description:
    "Creates a file and missing folders, or replaces a whole file. Lines that stand for text left out are refused. To change " +
    "a part use edit_file.",
  input,
  readOnly: false,
  about: (request) => request.path,
  run,
});

async function run(request: z.infer<typeof input>, context: ToolContext): Promise<ToolResult> {
  const where = workspacePath(request.path).relative;
  const { files } = await context.sandbox();
  const { path, answer, remark } = await byLook(files, where, (at) => readForm(files, at));
  const name = showName(path);
  const before = answer.ok ? answer.content : undefined;
  const omission = omissionLine(request.content, before?.kind === "text" ? before.text : "");
  if (before !== undefined && omission !== undefined) {
    return failure(
      `The content has the line "${oneLine(omission, 100)}", which stands for text that was left out: it would be deleted from ${name}. Nothing was written. Write the file out in full, or use edit_file.`,
    );
  }
  const { bytes, remark: keptRemark } =
    before === undefined
      ? { bytes: new TextEncoder().encode(request.content), remark: "" }
      : rewritten(name, before, request.content);
  const written = accepted(await files.write(path, bytes));
  const lines = countLines(request.content);
  const size = `${lines} ${lines === 1 ? "line" : "lines"}, ${showSize(bytes.length)}`;
  const firstLine = `${written.created ? "Created" : "Replaced"} ${name} (${size}).${keptRemark}`;
  return { text: remark === undefined ? firstLine : `${firstLine}\n${remark}` };
}

/** What a file holds now; of one that is too large to be edited, what its beginning says. */
async function readForm(
  files: SandboxFiles,
  path: string,
): Promise<FileAnswer<{ readonly content: FoundText }>> {
  const file = await readWholeFile(files, path);
  if (file.ok) return { ok: true, content: readText(file.bytes) };
  if (file.reason !== "failed") return file;
  const head = await files.read(path, { maxBytes: HEAD_BYTES });
  return head.ok ? { ok: true, content: readText(head.bytes, true) } : head;
}
