import { z } from "zod";
import { countLines } from "../transcript/truncate.ts";
import { accepted, failure } from "./failure.ts";
import { omissionLine } from "./omission.ts";
import { oneLine, showName, showSize, workspacePath } from "./paths.ts";
import { readTextFile } from "./text-file.ts";
import { typedTool, type ToolContext, type ToolResult } from "./tool.ts";

const input = z.strictObject({
  path: z.string(),
  content: z.string(),
});

export const writeFile = typedTool({
  name: "write_file",
  description:
    "Creates a file and missing folders, or replaces a whole file. Lines that stand for text left out are refused. To change " +
    "a part use edit_file.",
  input,
  readOnly: false,
  about: (given) => given.path,
  run,
});

async function run(given: z.infer<typeof input>, context: ToolContext): Promise<ToolResult> {
  const where = workspacePath(given.path);
  const { files } = await context.sandbox();
  const name = showName(where.relative);
  if (omissionLine(given.content, "") !== undefined) {
    const before = await readTextFile(files, where.relative);
    const omission = before.ok ? omissionLine(given.content, before.text) : undefined;
    if (omission !== undefined) {
      return failure(
        `The content has the line "${oneLine(omission, 100)}", which stands for text that was left out: it would be deleted from ${name}. Nothing was written. Write the file out in full, or use edit_file.`,
      );
    }
  }
  const bytes = new TextEncoder().encode(given.content);
  const written = accepted(await files.write(where.relative, bytes));
  const lines = countLines(given.content);
  const size = `${lines} ${lines === 1 ? "line" : "lines"}, ${showSize(bytes.length)}`;
  return { text: `${written.created ? "Created" : "Replaced"} ${name} (${size}).` };
}
