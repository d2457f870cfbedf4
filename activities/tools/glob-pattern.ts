/** A parsed piece at the start of the remaining glob. */
interface Piece {
  readonly source: string;
  /** Number of the glob's characters that it covers. */
  readonly length: number;
  /** 1 if a group opens here, -1 if one closes. */
  readonly nesting?: 1 | -1;
}

/**
 * Converts a glob, as ripgrep reads it, into a regular expression over relative paths. Pure. A pattern without a
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
  const found = /^\[([!^]?)(\]?[^\]/]+)\]/.exec(rest);
  if (found === null) return undefined;
  const [whole, negation, members = ""] = found;
  const escaped = members.replace(/[\\\]^]/g, "\\$&");
  return { source: `[${negation === "" ? "" : "^"}${escaped}]`, length: whole.length };
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
