/**
 * Which files a search looks at: git itself says so, in the sandbox. What it tracks always counts; ignore rules decide about the
 * rest, each repository's own. What a pattern or path names is looked at whatever the rules say, and what is left out is told.
 */
import { oneLine, showName } from "./paths.ts";
import { WORKSPACE } from "../config/sandbox-settings.ts";

/**
 * Bash functions, after `runOnPath`'s `$root` and `$target`. `walk_target NAMED` writes the names of files below the target to
 * `$work/names`, each after `./`, relative to the workspace; NAMED has, one a line, the names that ignore rules do not hide.
 * `filter WANTED UNWANTED` keeps those that match a regular expression, `tell` writes what `whatWasLeftOut` reads.
 */
export const FOLDER_WALK = `
cd -- "$root" || exit 96
rel=\${target#"$root"}
rel=\${rel#/}
shopt -u patsub_replacement 2>/dev/null
export GIT_CEILING_DIRECTORIES=\${root%/*} GIT_OPTIONAL_LOCKS=0
work=$(mktemp -d) || exit 98
trap 'rm -rf -- "$work"' EXIT
: >"$work/names"
: >"$work/err"
out=()
always=(--exclude=node_modules --exclude=.longhaul)
case /$rel/ in */node_modules/* | */.longhaul/*) always=() ;; esac

# Whether the name itself, or an ignored folder that it is in, is named. Uses git of walk.
is_named() {
  local path=\${1%/} above=
  [ -n "$named" ] || return 1
  while :; do
    case $'\\n'"$named"$'\\n' in
      *$'\\n'"\${path##*/}"$'\\n'*) [ -z "$above" ] || "\${git[@]}" check-ignore -q --no-index -- "$path/" && return 0 ;;
    esac
    case $path in */*) path=\${path%/*} above=1 ;; *) return 1 ;; esac
  done
}

walk() {
  local prefix=$1 git part outs subs sub base
  git=(git -c 'safe.directory=*' -c core.fsmonitor=false -C "$prefix")
  if [ "$("\${git[@]}" rev-parse --is-inside-work-tree 2>/dev/null)" != true ] || "\${git[@]}" check-ignore -q . 2>/dev/null; then
    [ -d "$work/none" ] || git init -q --template= --bare "$work/none" || exit 98
    git+=(-c core.excludesFile=/dev/null -c core.bare=false --git-dir="$work/none" --work-tree=.)
  fi
  mapfile -d '' -t part < <({ "\${git[@]}" ls-files -z; "\${git[@]}" ls-files -zo --exclude-standard "\${always[@]}"; } 2>>"$work/err" | LC_ALL=C sort -zu)
  [ \${#part[@]} -gt 0 ] && printf '%s\\0' "\${part[@]/#/$prefix}" >>"$work/names"
  mapfile -d '' -t outs < <("\${git[@]}" ls-files -zoi --exclude-standard "\${always[@]}" --directory 2>/dev/null)
  for sub in "\${outs[@]}"; do
    base=\${sub%/}
    base=\${base##*/}
    if is_named "$sub"; then
      find "$prefix$sub" -name .git -prune -o \\( -type f -o -type l \\) -print0 >>"$work/names" 2>>"$work/err"
    else
      case $base in node_modules | .longhaul) ;; *) out+=("$prefix$sub") ;; esac
    fi
  done
  mapfile -d '' -t subs < <("\${git[@]}" ls-files -zs | sed -nz 's/^160000 [^\\t]*\\t//p'; [ \${#part[@]} -gt 0 ] && printf '%s\\0' "\${part[@]}" | sed -nz 's:/$::p')
  for sub in "\${subs[@]}"; do
    if [ -d "$prefix$sub" ] && [ ! -L "$prefix$sub" ]; then walk "$prefix$sub/"; fi
  done
}

walk_target() {
  named=$1
  local start=./\${rel:+$rel/}
  if command -v git >/dev/null 2>&1; then walk "$start"
  else find "$start" -mindepth 1 \\( -name .git -o -name node_modules \\) -prune -o \\( -type f -o -type l \\) -print0 >"$work/names" 2>>"$work/err"; echo 'git is not installed in the sandbox, so no ignore rules were applied' >>"$work/err"; fi
  LC_ALL=C sort -zu -o "$work/names" "$work/names"
}

filter() {
  [ -n "$1" ] && { LC_ALL=C.UTF-8 grep -zaP -e "(?s)$1" <"$work/names" >"$work/kept"; [ $? -gt 1 ] && exit 99; mv "$work/kept" "$work/names"; }
  [ -n "$2" ] && { LC_ALL=C.UTF-8 grep -zavP -e "(?s)$2" <"$work/names" >"$work/kept"; [ $? -gt 1 ] && exit 99; mv "$work/kept" "$work/names"; }
  return 0
}

tell() {
  { printf 'looked %s\\n' "$(tr -cd '\\0' <"$work/names" | wc -c)"
    printf 'left %s\\n' "\${#out[@]}"
    local one
    for one in "\${out[@]:0:4}"; do printf 'name %s\\n' "\${one//$'\\n'/?}"; done
    head -n 5 "$work/err"; } >&2
}
`;

export interface Walked {
  /** How many files were looked at. */
  readonly looked: number;
  /** What was not, as lines: with the names of what ignore rules hide, or only with their number, or only what went wrong. */
  readonly leftOut: Readonly<Record<"names" | "count" | "troubles", readonly string[]>>;
}

/** Reads what `tell` wrote. */
export function whatWasLeftOut(err: string): Walked {
  const lines = err.split("\n").filter((line) => line !== "");
  const numberOf = (word: string) =>
    Number(lines.find((line) => line.startsWith(`${word} `))?.slice(word.length + 1) ?? 0);
  const names = lines
    .filter((line) => line.startsWith("name ./"))
    .map((line) => showName(line.slice("name ./".length)));
  const wrong = lines
    .filter((line) => !/^(?:looked|left) \d+$|^name \.\//.test(line))
    .map((line) => oneLine(line.replace(/^(?:rg|grep|find|warning|git): /, ""), 160));
  const leftOut = numberOf("left");
  const more = leftOut > names.length ? ` and ${leftOut - names.length} more` : "";
  const rule = (what: string): string[] => (leftOut === 0 ? [] : [`(Left out by ignore rules: ${what})`]);
  const troubles = wrong.length === 0 ? [] : [`(Could not be looked at: ${wrong.slice(0, 3).join("; ")})`];
  return {
    looked: numberOf("looked"),
    leftOut: {
      names: [...rule(`${names.join(", ")}${more}; name one to look there`), ...troubles],
      count: [...rule(`${leftOut} ${leftOut === 1 ? "entry" : "entries"}`), ...troubles],
      troubles,
    },
  };
}

/** Patterns for names as models write them: one, or several with commas between them. */
export interface GlobList {
  /** Regular expressions over `./` and a path relative to the workspace; empty: no condition. */
  readonly wanted: string;
  readonly unwanted: string;
  /** Names without wildcards in the patterns, one a line: what ignore rules do not hide. */
  readonly named: string;
}

/** In one name. More can take practically forever to match, and no name needs them. */
const MAX_STARS = 8;

/**
 * @param folder where the search begins, relative to the workspace: a pattern with a slash is relative to it, or to the workspace
 * @throws SyntaxError if a pattern is no glob, or has too many stars
 */
export function globList(patternList: string, folder: string): GlobList {
  const patterns = listOf(patternList).map((pattern) => pattern.replace(/^(!?)(?:\.\/)+/, "$1"));
  if (patterns.some((pattern) => pattern.split("/").some((part) => part.split("*").length - 1 > MAX_STARS)))
    throw new SyntaxError("too many stars in one name");
  const included = patterns.filter((pattern) => !pattern.startsWith("!"));
  const unwanted = patterns.filter((pattern) => pattern.startsWith("!")).map((pattern) => pattern.slice(1));
  const names = included
    .flatMap((pattern) => pattern.split(/[/{},]/))
    .filter((part) => part !== "" && !/[*?[\]\\]/.test(part));
  return {
    wanted: sourceOf(included, folder),
    unwanted: sourceOf(unwanted, folder),
    named: names.join("\n"),
  };
}

function sourceOf(patterns: readonly string[], folder: string): string {
  const below = folder === "." ? "" : `(?:${escaped(`${folder}/`)})?`;
  return patterns
    .map((pattern) => {
      const isAbsolute = pattern.startsWith(`${WORKSPACE}/`);
      const source = globToRegExp(isAbsolute ? pattern.slice(WORKSPACE.length) : pattern).source;
      return source.startsWith("^") ? `^\\./${isAbsolute ? "" : below}${source.slice(1)}` : source;
    })
    .map((source) => `(?:${source})`)
    .join("|");
}

const escaped = (text: string): string => text.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&");

/** `*.ts,*.js`, also with a blank, `;` or `|`; a list in JSON. Commas in braces and sets belong to the pattern. */
function listOf(patternList: string): string[] {
  const parts: string[] = [];
  let depth = 0;
  let part = "";
  for (const char of unquoted(patternList)) {
    if ("{[".includes(char)) depth += 1;
    if ("}]".includes(char)) depth = Math.max(0, depth - 1);
    if (depth === 0 && ",;|\n".includes(char)) {
      parts.push(part);
      part = "";
    } else part += char;
  }
  const patterns = [...parts, part].map((one) => one.trim()).filter((one) => one !== "");
  // Blanks separate only what could not be one name: each piece has a star.
  return patterns.flatMap((one) => {
    const pieces = one.split(/\s+/);
    return pieces.every((piece) => piece.includes("*")) ? pieces : [one];
  });
}

function unquoted(patternList: string): string {
  const list = /^\s*\[\s*("(?:[^"\\]|\\.)*"(?:\s*,\s*"(?:[^"\\]|\\.)*")*)\s*\]\s*$/.exec(patternList)?.[1];
  return list === undefined ? patternList : list.replace(/"((?:[^"\\]|\\.)*)"/g, "$1");
}

/** A parsed piece at the start of the remaining glob. */
interface Piece {
  readonly source: string;
  /** Number of the glob's characters that it covers. */
  readonly length: number;
  /** 1 if a group opens here, -1 if one closes. */
  readonly nesting?: 1 | -1;
}

/**
 * Converts a glob, as ripgrep reads it, into a regular expression over relative paths. A pattern without a
 * slash matches in any folder; `*` and `?` stay within a name, `**` does not; `[…]` and `{a,b}` as in a shell.
 */
export function globToRegExp(glob: string): RegExp {
  const anchored = glob.startsWith("/") ? glob.slice(1) : glob;
  const start = glob.includes("/") ? "^" : "(?:^|/)";
  let source = "";
  let depth = 0;
  let at = 0;
  while (at < anchored.length) {
    const rest = anchored.slice(at);
    const piece = wildcard(rest) ?? set(rest) ?? alternative(rest, depth) ?? literal(rest);
    source += piece.source;
    depth += piece.nesting ?? 0;
    at += piece.length;
  }
  return new RegExp(`${start}${source}${")".repeat(depth)}$`, "s");
}

function wildcard(rest: string): Piece | undefined {
  if (rest.startsWith("**/")) return { source: "(?:[^/]+/)*", length: 3 };
  if (rest.startsWith("**")) return { source: ".*", length: 2 };
  if (rest.startsWith("*")) return { source: "[^/]*", length: 1 };
  return rest.startsWith("?") ? { source: "[^/]", length: 1 } : undefined;
}

function set(rest: string): Piece | undefined {
  const match = /^\[([!^]?)(\]?[^\]/]+)\]/.exec(rest);
  if (match === null) return undefined;
  const [bracket, negation, members = ""] = match;
  const escaped = members.replace(/[\\\]^]/g, "\\$&");
  return { source: `[${negation === "" ? "" : "^"}${escaped}]`, length: bracket.length };
}

/** `{a,b}`. @param depth number of open groups */
function alternative(rest: string, depth: number): Piece | undefined {
  if (rest.startsWith("{") && rest.includes("}")) return { source: "(?:", length: 1, nesting: 1 };
  if (depth === 0) return undefined;
  if (rest.startsWith("}")) return { source: ")", length: 1, nesting: -1 };
  return rest.startsWith(",") ? { source: "|", length: 1 } : undefined;
}

function literal(rest: string): Piece {
  const isEscaped = rest.startsWith("\\") && rest.length > 1;
  const char = rest.charAt(isEscaped ? 1 : 0);
  return {
    source: /[\\^$.*+?()[\]{}|/]/.test(char) ? `\\${char}` : char,
    length: isEscaped ? 2 : 1,
  };
}
