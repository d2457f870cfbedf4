/**
 * A glob as ripgrep reads it, as a regular expression over relative paths. Pure. A pattern without a slash matches in
 * any folder; `*` and `?` stay within a name, `**` does not; `[…]` and `{a,b}` as in a shell.
 */
export function globToRegExp(glob: string): RegExp {
  const anchored = glob.startsWith("/") ? glob.slice(1) : glob;
  const start = glob.includes("/") ? "^" : "(?:^|/)";
  let source = "";
  let depth = 0;
  for (let index = 0; index < anchored.length; index += 1) {
    const char = anchored[index] ?? "";
    const rest = anchored.slice(index);
    if (rest.startsWith("**/")) {
      source += "(?:[^/]+/)*";
      index += 2;
    } else if (rest.startsWith("**")) {
      source += ".*";
      index += 1;
    } else if (char === "*") {
      source += "[^/]*";
    } else if (char === "?") {
      source += "[^/]";
    } else if (char === "[" && /^\[[!^]?\]?[^\]/]+\]/.test(rest)) {
      const set = /^\[([!^]?)(\]?[^\]/]+)\]/.exec(rest);
      source += `[${set?.[1] === "" ? "" : "^"}${(set?.[2] ?? "").replace(/[\\\]^]/g, "\\$&")}]`;
      index += (set?.[0].length ?? 1) - 1;
    } else if (char === "{" && rest.includes("}")) {
      source += "(?:";
      depth += 1;
    } else if (char === "}" && depth > 0) {
      source += ")";
      depth -= 1;
    } else if (char === "," && depth > 0) {
      source += "|";
    } else if (char === "\\" && index + 1 < anchored.length) {
      index += 1;
      source += escape(anchored[index] ?? "");
    } else {
      source += escape(char);
    }
  }
  return new RegExp(`${start}${source}${")".repeat(depth)}$`, "s");
}

function escape(char: string): string {
  return /[\\^$.*+?()[\]{}|/]/.test(char) ? `\\${char}` : char;
}
