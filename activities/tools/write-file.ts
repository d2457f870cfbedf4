import { z } from "zod";
import { countLines } from "../transcript/truncate.ts";
import { accepted, failure } from "./failure.ts";
import { omissionLine } from "./omission.ts";
import { oneLine, showName, showSize, workspacePath } from "./paths.ts";
import { readTextFile } from "./text-file.ts";
import { typedTool, type ToolContext, type ToolResult } from "./tool.ts";

const input = z.strictObject({
  path: z
    .string()
    .describe("File to write, relative to /workspace or absolute inside it. Missing folders are created."),
  content: z.string().describe("The whole content of the file."),
});

export const writeFile = typedTool({
  name: "write_file",
  description:
    "Writes a whole file: creates it, or replaces the existing one and keeps its mode. To change a part of a file " +
    "use edit_file. Write the content out in full: a line such as `... rest unchanged` is refused.",
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
