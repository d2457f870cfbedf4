import { WORKSPACE } from "../config/container-settings.ts";
import { z } from "zod";
import { inTime } from "../process/in-time.ts";
import { runOnPath } from "./sandbox-program.ts";
import { failure } from "./failure.ts";
import { globToRegExp } from "./glob-pattern.ts";
import { showName, workspacePath } from "./paths.ts";
import { typedTool, type ToolContext, type ToolResult } from "./tool.ts";

const input = z.strictObject({
  pattern: z.string().min(1).describe("Glob; without a slash it matches in every folder."),
  path: z.string().optional(),
});

/** Bytes of names collected before the newest are selected: some 50,000 files. */
const MAX_BYTES = 4_000_000;

// ripgrep respects .gitignore and sorts; without it, find lists everything and the pattern is applied here.
const SCRIPT = `[ -d "$target" ] || exit 95
cd -- "$target" || exit 96
if command -v rg >/dev/null 2>&1; then
  printf 'rg\\0'
  rg --no-config --no-require-git --hidden --no-messages --files --null --sortr modified \\
    --glob "$2" --glob '!.git' "\${modules[@]}" | head -c ${MAX_BYTES}
else
  printf 'find\\0'
  find . -mindepth 1 \\( -name .git -o -name node_modules \\) -prune -o \\( -type f -o -type l \\) -printf '%T@\\t%P\\0' | head -c ${MAX_BYTES}
fi
exit 0
`;

export const globFiles = typedTool({
  name: "glob_files",
  description:
    "Finds files by name, newest first, at most 1,000. Leaves out .git, node_modules and what .gitignore excludes.",
  input,
  readOnly: true,
  about: (given) => `${given.pattern}${given.path === undefined ? "" : ` in ${given.path}`}`,
  run,
});

async function run(given: z.infer<typeof input>, context: ToolContext): Promise<ToolResult> {
  const where = workspacePath(given.path);
  const pattern = given.pattern.startsWith(`${WORKSPACE}/`)
    ? given.pattern.slice(WORKSPACE.length + 1)
    : given.pattern;
  if (pattern.startsWith("!"))
    return failure("A pattern cannot begin with !: give what to find, not what to leave out.");
  if (pattern.startsWith("../") || pattern.includes("\0"))
    return failure("The pattern must be inside /workspace.");
  const end = await runOnPath(context, SCRIPT, [where.relative, pattern], MAX_BYTES + 64);
  const name = showName(where.relative);
  if (end.exitCode === 95) return failure(`${name} is not a folder.`);
  const found = namesOf(end.out.toString("utf8"), pattern);
  if (found === undefined)
    return failure("The pattern is not a glob, or has too many stars to be matched: use fewer of them.");
  if (found.length === 0) {
    return { text: `No file matches ${showName(pattern)}${where.relative === "." ? "" : ` in ${name}`}.` };
  }
  const { maxMatches } = context.limits;
  const prefix = where.relative === "." ? "" : `${where.relative}/`;
  const lines = found.slice(0, maxMatches).map((file) => showName(prefix + file));
  const more = found.length - lines.length;
  if (more > 0) lines.push(`(${more.toLocaleString("en-US")} more files match: narrow the pattern)`);
  return { text: lines.join("\n") };
}

/** @returns undefined if the pattern cannot be matched */
function namesOf(out: string, pattern: string): string[] | undefined {
  const [source, ...rows] = out.split("\0");
  // The last element is empty, or a name cut off at the limit.
  rows.pop();
  if (source === "rg") return rows.map((row) => row.replace(/^\.\//, ""));
  const files = rows.map((row) => {
    const tab = row.indexOf("\t");
    return { at: Number(row.slice(0, tab)), name: row.slice(tab + 1) };
  });
  return matching(files, pattern)
    ?.toSorted((left, right) => right.at - left.at)
    .map(({ name }) => name);
}

function matching<Row extends { readonly name: string }>(
  rows: readonly Row[],
  pattern: string,
): Row[] | undefined {
  try {
    // A pattern with many stars may take practically forever.
    const matches = globToRegExp(pattern);
    return inTime(() => rows.filter(({ name }) => matches.test(name)));
  } catch {
    return undefined;
  }
}
