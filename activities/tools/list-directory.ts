import { z } from "zod";
import type { FileEntry } from "../sandbox/sandbox.ts";
import { accepted, typedTool, type ToolContext, type ToolResult } from "./tool.ts";
import { byLook } from "./real-path.ts";
import { showName, showSize, workspacePath } from "./paths.ts";

const input = z.strictObject({
  path: z.string().optional(),
});

export const listDirectory = typedTool({
  name: "list_directory",
  description:
    "Lists a folder, hidden entries too: folders with a slash, files with their size, links with their target; at most 1,000.",
  input,
  readOnly: true,
  about: (request) => request.path ?? ".",
  run,
});

async function run(request: z.infer<typeof input>, context: ToolContext): Promise<ToolResult> {
  const where = workspacePath(request.path);
  const { files } = await context.sandbox();
  const { maxMatches } = context.limits;
  const folder = await byLook(files, where.relative, (at) => files.list(at, { maxEntries: maxMatches }));
  const listed = accepted(folder.answer, { "not-a-folder": "Use read_file for a file." });
  const name = showName(folder.path);
  if (listed.total === 0) return { text: `(${name} is empty)` };
  const lines = listed.entries.toSorted(foldersFirst).slice(0, maxMatches).map(showEntry);
  const more = listed.total - lines.length;
  if (more > 0) lines.push(`(${more.toLocaleString("en-US")} more entries: narrow it with glob_files)`);
  if (folder.remark !== undefined) lines.push(folder.remark);
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
