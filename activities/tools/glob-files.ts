import { z } from "zod";
import { failure, typedTool, type ToolContext, type ToolResult } from "./tool.ts";
import { FOLDER_WALK, whatWasLeftOut, type GlobList, globList } from "./folder-walk.ts";
import { showName, workspacePath } from "./paths.ts";
import { runOnPath } from "./sandbox-program.ts";

const input = z.strictObject({
  pattern: z.string().min(1).describe("Glob; without a slash it matches in every folder."),
  path: z.string().optional(),
});

/** Bytes of names collected before the newest are selected: some 50,000 files. */
const MAX_BYTES = 4_000_000;

const SCRIPT = `[ -d "$target" ] || exit 95
${FOLDER_WALK}
walk_target "$2"
filter "$3" "$4"
xargs -0r sh -c 'find "$@" -maxdepth 0 \\( -type f -o -type l \\) -printf "%T@\\t%p\\0"' sh <"$work/names" 2>/dev/null |
  sort -zrn | head -c ${MAX_BYTES}
tell
exit 0
`;

export const globFiles = typedTool({
  name: "glob_files",
  description:
    "Finds files by name, newest first, at most 1,000. Leaves out .git, node_modules and, unless named, what .gitignore excludes.",
  input,
  readOnly: true,
  about: (request) => `${request.pattern}${request.path === undefined ? "" : ` in ${request.path}`}`,
  run,
});

async function run(request: z.infer<typeof input>, context: ToolContext): Promise<ToolResult> {
  const where = workspacePath(request.path);
  const { pattern } = request;
  if (pattern.startsWith("!"))
    return failure("A pattern cannot begin with !: give what to find, not what to leave out.");
  if (pattern.startsWith("../") || pattern.includes("\0"))
    return failure("The pattern must be inside /workspace.");
  const list = globListOr(pattern, where.relative);
  if (list === undefined) return failure(NO_GLOB);
  const args = [where.relative, list.named, list.wanted, list.unwanted] as const;
  const end = await runOnPath(context, SCRIPT, args, MAX_BYTES + 64);
  const name = showName(end.path);
  if (end.exitCode === 95) return failure(`${name} is not a folder.`);
  if (end.exitCode === 99) return failure(NO_GLOB);
  const { leftOut } = whatWasLeftOut(end.err);
  const remark = end.remark === undefined ? [] : [end.remark];
  const names = namesOf(end.out.toString("utf8"));
  if (names.length === 0) {
    const none = `No file matches ${showName(pattern)}${end.path === "." ? "" : ` in ${name}`}.`;
    return { text: [none, ...leftOut.names, ...remark].join("\n") };
  }
  const { maxMatches } = context.limits;
  const lines = names.slice(0, maxMatches).map((file) => showName(file));
  const more = names.length - lines.length;
  if (more > 0) lines.push(`(${more.toLocaleString("en-US")} more files match: narrow the pattern)`);
  return { text: [...lines, ...leftOut.troubles, ...remark].join("\n") };
}

const NO_GLOB = "The pattern is not a glob, or has too many stars to be matched: use fewer of them.";

function globListOr(pattern: string, folder: string): GlobList | undefined {
  try {
    return globList(pattern, folder);
  } catch {
    return undefined;
  }
}

/** Newest first. */
function namesOf(out: string): string[] {
  // The last element is empty, or a name cut off at the limit.
  return out
    .split("\0")
    .slice(0, -1)
    .map((row) => row.slice(row.indexOf("\t") + 1).replace(/^\.\//, ""));
}
