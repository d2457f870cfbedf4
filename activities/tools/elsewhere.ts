/** Adapts the tools to a session whose workspace is a folder other than /workspace: they refer to that folder. Pure. */
import path from "node:path/posix";
import { inFolder, WORKSPACE } from "../config/sandbox-settings.ts";
import { toolSpec } from "./index.ts";
import type { Tool, ToolResult } from "./tool.ts";

/** The same tool with `folder` in its texts, accepting paths inside it. */
export function toolIn(tool: Tool, folder: string): Tool {
  // Descriptions by an MCP server, or of the operator's own tools, do not refer to our workspace.
  if (tool.server !== undefined || tool.isOwn === true) return tool;
  const { description, inputSchema } = toolSpec(tool);
  return {
    ...tool,
    description: inFolder(description, folder),
    inputSchema: JSON.parse(inFolder(JSON.stringify(inputSchema), folder)) as Record<string, unknown>,
    run: async (input, context) =>
      named(await tool.run(fromFolder(tool.name, input, folder), context), folder),
  };
}

/** Only errors are our own texts, so output stays unchanged. */
const named = (result: ToolResult, folder: string): ToolResult =>
  result.isError === true && result.exitCode === undefined
    ? { ...result, text: inFolder(result.text, folder) }
    : result;

const PATHS = ["path", "cwd"];
/** The tool whose pattern consists of paths. */
const GLOB = "glob_files";
const PATCH_LINE = /^(\*\*\* (?:Add File|Update File|Delete File|Move to): )(\/.*)$/gm;

function fromFolder(tool: string, input: unknown, folder: string): unknown {
  if (typeof input !== "object" || input === null) return input;
  return Object.fromEntries(
    Object.entries(input).map(([name, value]: [string, unknown]) => {
      if (typeof value !== "string") return [name, value];
      if (PATHS.includes(name) || (tool === GLOB && name === "pattern"))
        return [name, inWorkspace(value, folder)];
      if (name !== "patch") return [name, value];
      return [
        name,
        value.replace(PATCH_LINE, (_, mark: string, given: string) => mark + inWorkspace(given, folder)),
      ];
    }),
  );
}

/** A path as the tools expect it; a place elsewhere is refused under the name given. */
function inWorkspace(given: string, folder: string): string {
  if (!given.startsWith("/")) return given;
  const inside = path.relative(folder, given);
  if (inside === "") return WORKSPACE;
  return inside === ".." || inside.startsWith("../") ? given : `${WORKSPACE}/${inside}`;
}
