import { z } from "zod";
import { cutChars } from "../contract/cut-text.ts";
import { runOnPath } from "./sandbox-program.ts";
import { failure } from "./failure.ts";
import { oneLine, showName, workspacePath } from "./paths.ts";
import { typedTool, type ToolContext, type ToolResult } from "./tool.ts";
import { type ToolLimits } from "../contract/tools.ts";

const input = z.strictObject({
  pattern: z.string().min(1).describe("Regular expression; (?i) at its start ignores case."),
  path: z.string().optional().describe("File or folder to search. Default /workspace."),
  include: z.string().optional().describe("Glob for file names."),
});

/** Most output read from the sandbox: 1,000 matches of 2,000 bytes and their names. */
const MAX_BYTES = 4_000_000;
/** Bytes of a line that leave the sandbox; the rest of a longer line is not needed. */
const LINE_BYTES = 2_000;

// One match more than requested is read, to detect that there are more. The exit codes are ripgrep's and grep's own.
const SCRIPT = `set -o pipefail
cd -- "$root" || exit 96
rel=\${target#"$root"}
rel=./\${rel#/}
include=()
if command -v rg >/dev/null 2>&1; then
  [ -n "$3" ] && include=(--glob "$3")
  rg --no-config --no-require-git --hidden --no-heading --with-filename --line-number --color never --null \\
    --max-columns ${LINE_BYTES} --max-columns-preview --sort path "\${include[@]}" --glob '!.git' "\${modules[@]}" \\
    -e "$2" -- "$rel" | head -n "$4"
else
  [ -n "$3" ] && include=("--include=$3")
  [ \${#modules[@]} -gt 0 ] && modules=(--exclude-dir=node_modules)
  grep -rHnIPZ --color=never --exclude-dir=.git "\${modules[@]}" "\${include[@]}" -e "$2" -- "$rel" | head -n "$4"
fi
`;

export const grepContent = typedTool({
  name: "grep_content",
  description:
    "Searches file contents. Returns the matching lines with their numbers, by file: at most 1,000, each cut at 500 characters. " +
    "Leaves out binary files and what glob_files leaves out.",
  input,
  readOnly: true,
  about: (given) => `${given.pattern}${given.path === undefined ? "" : ` in ${given.path}`}`,
  run,
});

async function run(given: z.infer<typeof input>, context: ToolContext): Promise<ToolResult> {
  const where = workspacePath(given.path);
  const { limits } = context;
  if ([given.pattern, given.include ?? ""].some((text) => text.includes("\0"))) {
    return failure("A pattern cannot contain a NUL character.");
  }
  const { pattern, include = "" } = given;
  const end = await runOnPath(
    context,
    SCRIPT,
    [where.relative, pattern, include, String(limits.maxMatches + 1)],
    MAX_BYTES,
  );
  const name = showName(where.relative);
  const matches = parseMatches(end.out.toString("utf8"));
  if (matches.length > 0) return { text: show(matches, limits) };
  if (end.exitCode === 1 || end.err.trim() === "") {
    return {
      text: `No line matches ${oneLine(given.pattern, 200)}${where.relative === "." ? "" : ` in ${name}`}.`,
    };
  }
  return failure(
    `The search failed: ${oneLine(end.err, 600)}\nThe pattern is a regular expression: escape ( ) [ ] { } . * + ? to match them literally.`,
  );
}

interface Match {
  readonly file: string;
  readonly line: string;
  readonly text: string;
}

/** Parses `name NUL number : text`, one per line; a name may contain anything but NUL. */
function parseMatches(out: string): Match[] {
  const matches: Match[] = [];
  for (const [, file = "", line = "", text = ""] of out.matchAll(/([^\0]+)\0(\d+):([^\n]*)(?:\n|$)/g)) {
    matches.push({ file: file.replace(/^\.\//, ""), line, text });
  }
  return matches;
}

function show(matches: readonly Match[], limits: ToolLimits): string {
  const lines: string[] = [];
  let file: string | undefined;
  for (const match of matches.slice(0, limits.maxMatches)) {
    if (match.file !== file) {
      file = match.file;
      lines.push(`${lines.length === 0 ? "" : "\n"}${showName(file)}`);
    }
    const text = match.text.replace(/\r$/, "");
    const cut = cutChars(text, limits.maxLineChars);
    lines.push(`${match.line}: ${cut}${cut === text ? "" : "…"}`);
  }
  if (matches.length > limits.maxMatches) {
    lines.push(
      `\n(more than ${limits.maxMatches.toLocaleString("en-US")} matches: narrow it with path, include or the pattern)`,
    );
  }
  return lines.join("\n");
}
