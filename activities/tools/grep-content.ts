import { z } from "zod";
import { cutChars } from "../text/cut.ts";
import { FOLDER_WALK, whatWasLeftOut, type GlobList, globList } from "./folder-walk.ts";
import { runOnPath } from "./sandbox-program.ts";
import { failure, typedTool, type ToolContext, type ToolResult } from "./tool.ts";
import { oneLine, showName, workspacePath } from "./paths.ts";
import { type ToolLimits } from "../contract/tools.ts";

const input = z.strictObject({
  pattern: z.string().min(1).describe("Regular expression; (?i) at its start ignores case."),
  path: z.string().optional().describe("File or folder to search. Default /workspace."),
  include: z.string().optional().describe("Globs for file names, separated by commas."),
});

/** Most output read from the sandbox: 1,000 matches of 2,000 bytes and their names. */
const MAX_BYTES = 4_000_000;
/** Bytes of a line that leave the sandbox; the rest of a longer line is not needed. */
const LINE_BYTES = 2_000;

// UTF-16 without a mark, which the searching programs take for binary: read so, it has no control characters, and more of ASCII
// than read in the other order. Writes the names of each order to a file.
const FIND_WIDE = `
import sys, unicodedata
def ascii_in(head, name):
    try: text = head.decode(name)
    except UnicodeDecodeError: return 0
    odd = sum(unicodedata.category(c)[0] == "C" and c not in "\\t\\n\\r\\f\\x1b\\ufeff\\u00ad\\u200b\\u200c\\u200d" for c in text)
    return 0 if odd * 100 > len(text) or "\\0" in text else sum(c < "\\x7f" for c in text)
found = {"le": b"", "be": b""}
for name in filter(None, sys.stdin.buffer.read().split(b"\\0")):
    try:
        with open(name, "rb") as file: head = file.read(4096)
    except OSError: continue
    if len(head) % 2 or len(head) < 4: continue
    # The last character may be cut in two.
    ascii = {way: max(ascii_in(head, "utf-16-" + way), ascii_in(head[:-2], "utf-16-" + way)) for way in found}
    way = max(ascii, key=ascii.get)
    if ascii[way]: found[way] += name + b"\\0"
for way in found:
    with open(sys.argv[1] + "/" + way, "wb") as file: file.write(found[way])
`;

// One match more than requested is read, to detect that there are more. A file that is named is searched whatever it holds; of a
// folder's files with zero bytes, the name comes first. Files in which a pattern cannot be found by its bytes are said.
const SCRIPT = `${FOLDER_WALK}
if command -v rg >/dev/null 2>&1; then
  search=(rg --no-config --no-heading --with-filename --line-number --color never --null --crlf -j1
    --max-columns ${LINE_BYTES} --max-columns-preview)
  zeros=(rg --no-config --null -la -j1 -e '(?-u)\\x00')
  wide() { xargs -0r -a "$work/$2" "\${search[@]}" --encoding "utf-16$2" -e "$1" --; }
else
  search=(grep -HnPZ --color=never)
  zeros=(grep -laZP -e '\\x00')
  wide() {
    while IFS= read -rd '' name; do
      iconv -c -f "utf-16$2" -t utf-8 -- "$name" | "\${search[@]}" -a --label="$name" -e "$1"
    done <"$work/$2"
  }
fi
printf '' | "\${search[@]}" -e "$2" >/dev/null
[ $? -gt 1 ] && exit 2
if [ "$7" = again ]; then
  xargs -0r -a <(printf '%s\\0' "\${@:8}") "\${search[@]}" -a -e "$2" -- | head -n "$3"
  exit 0
fi
if [ -f "$target" ]; then
  search+=(-a)
  printf './%s\\0' "$rel" >"$work/names"
else
  walk_target "$4"
  filter "$5" "$6"
  xargs -0r sh -c 'find "$@" -maxdepth 0 -type f -print0' sh <"$work/names" >"$work/kept" 2>/dev/null
  mv "$work/kept" "$work/names"
fi
xargs -0r -a "$work/names" "\${zeros[@]}" -- 2>/dev/null | python3 -c '${FIND_WIDE}' "$work"
sort -z "$work/le" "$work/be" | comm -z -13 - "$work/names" >"$work/kept"
{
  xargs -0r -a "$work/kept" "\${search[@]}" -e "$2" --
  wide "$2" le
  wide "$2" be
} 2>>"$work/err" | head -n "$3"
case $2 in *[!\x01-\x7f]*)
  LC_ALL=C.UTF-8 xargs -0r -a "$work/kept" grep -laxv -e '.*' -- | sed 's/$/: not UTF-8, so only ASCII is found in it/' >>"$work/err" ;;
esac
# grep, unlike ripgrep, says this among its errors.
grep -a ': binary file matches$' "$work/err"
sed -i '/: binary file matches$/d' "$work/err"
tell
`;

export const grepContent = typedTool({
  name: "grep_content",
  description:
    "Searches file contents. Returns the matching lines with their numbers, by file: at most 1,000, each cut at 500 characters. " +
    "Leaves out what glob_files leaves out.",
  input,
  readOnly: true,
  about: (request) => `${request.pattern}${request.path === undefined ? "" : ` in ${request.path}`}`,
  run,
});

async function run(request: z.infer<typeof input>, context: ToolContext): Promise<ToolResult> {
  const where = workspacePath(request.path);
  const { limits } = context;
  const { pattern, include = "" } = request;
  if ([pattern, include].some((text) => text.includes("\0"))) {
    return failure("A pattern cannot contain a NUL character.");
  }
  const list = includeOf(include, where.relative);
  if (list === undefined) return failure(NO_INCLUDE);
  const ask = (path: string, again: readonly string[]) =>
    runOnPath(
      context,
      SCRIPT,
      [path, pattern, String(limits.maxMatches + 1), list.named, list.wanted, list.unwanted, ...again],
      MAX_BYTES,
    );
  const end = await ask(where.relative, [""]);
  if (end.exitCode === 99) return failure(NO_INCLUDE);
  if (end.exitCode === 2) {
    return failure(
      `The search failed: ${oneLine(end.err, 600)}\nThe pattern is a regular expression: escape ( ) [ ] { } . * + ? to match them literally.`,
    );
  }
  const { text, binaries } = withoutBinaries(end.out.toString("utf8"));
  const matches = parseMatches(text);
  const inBinaries =
    binaries.length === 0 || matches.length > limits.maxMatches
      ? []
      : parseMatches(
          (await ask(end.path, ["again", ...binaries.slice(0, MAX_BINARIES)])).out.toString("utf8"),
        );
  const all = [...matches, ...inBinaries.filter((match) => isText(match.text))];
  const { looked, leftOut } = whatWasLeftOut(end.err);
  const unshown = binaries.filter((file) => !all.some((match) => match.file === file));
  const notes = [
    ...(unshown.length === 0 ? [] : [`(Binary files that match, not shown: ${listed(unshown)})`]),
    ...(all.length === 0 ? leftOut.names : leftOut.count),
    ...(end.remark === undefined ? [] : [end.remark]),
  ];
  if (all.length > 0) return { text: [show(all, limits), ...notes].join("\n") };
  const inFolder = end.path === "." ? "" : ` in ${showName(end.path)}`;
  const none =
    looked === 0
      ? `No file was searched${inFolder}: ${include === "" ? "there is none" : `none matches ${showName(include)}`}.`
      : `No line matches ${oneLine(pattern, 200)}${inFolder}.`;
  return { text: [none, ...notes].join("\n") };
}

const NO_INCLUDE = "include is not a glob, or has too many stars. Write for example *.ts, or *.ts,*.js.";
/** Files with zero bytes that are searched as text. */
const MAX_BINARIES = 200;

function includeOf(include: string, folder: string): GlobList | undefined {
  try {
    return globList(include, folder);
  } catch {
    return undefined;
  }
}

/** Splits off the lines that name files with zero bytes, which matched. */
function withoutBinaries(out: string): { text: string; binaries: string[] } {
  const binaries: string[] = [];
  const text = out.replace(/^(?:grep: )?\.\/(.*): binary file matches.*\n?/gm, (_line, file: string) => {
    binaries.push(file);
    return "";
  });
  return { text, binaries };
}

/** Whether a line of a file with zero bytes is text all the same. */
function isText(line: string): boolean {
  // oxlint-disable-next-line no-control-regex
  return (line.match(/[\u0000-\u0008\u000e-\u001a\u001c-\u001f\uFFFD]/g)?.length ?? 0) <= line.length / 10;
}

const listed = (names: readonly string[]): string =>
  `${names.slice(0, 5).map(showName).join(", ")}${names.length > 5 ? ` and ${names.length - 5} more` : ""}`;

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
