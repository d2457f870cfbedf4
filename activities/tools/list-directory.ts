import { z } from "zod";
import type { FileEntry } from "../sandbox/sandbox.ts";
import { accepted } from "./failure.ts";
import { showName, showSize, workspacePath } from "./paths.ts";
import { typedTool, type ToolContext, type ToolResult } from "./tool.ts";

const input = z.strictObject({
  path: z.string().optional().describe("Folder to list, relative to /workspace. Default: /workspace itself."),
});

export const listDirectory = typedTool({
  name: "list_directory",
  description:
    "Lists a folder, with its hidden entries: folders first (with a slash), then files with their size and links with their " +
    "target. At most 1,000 entries; glob_files finds files by pattern in many folders.",
  input,
  readOnly: true,
  about: (given) => given.path ?? ".",
  run,
});

async function run(given: z.infer<typeof input>, context: ToolContext): Promise<ToolResult> {
  const where = workspacePath(given.path);
  const { files } = await context.sandbox();
  const { maxMatches } = context.limits;
  const listed = accepted(await files.list(where.relative, { maxEntries: maxMatches }), {
    "not-a-folder": "Use read_file for a file.",
  });
  const name = showName(where.relative);
  if (listed.total === 0) return { text: `(${name} is empty)` };
  const lines = listed.entries.toSorted(foldersFirst).slice(0, maxMatches).map(showEntry);
  const more = listed.total - lines.length;
  if (more > 0) lines.push(`(${more.toLocaleString("en-US")} more entries: narrow it with glob_files)`);
  return { text: lines.join("\n") };
}

function foldersFirst(left: FileEntry, right: FileEntry): number {
  const folders = Number(right.kind === "folder") - Number(left.kind === "folder");
  return folders || Number(left.name > right.name) - Number(left.name < right.name);
}

function showEntry(entry: FileEntry): string {
  const name = showName(entry.name);
  switch (entry.kind) {
    case "folder":
      return `${name}/`;
    case "link":
      return `${name} -> ${showName(entry.target ?? "?")}`;
    case "file":
      return `${name}  ${showSize(entry.size)}`;
    case "other":
      return `${name}  (neither file nor folder)`;
  }
}
