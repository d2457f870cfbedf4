/** Patterns for names as models write them: one, or several with commas between them. Pure. */
import { WORKSPACE } from "../config/sandbox-settings.ts";
import { globToRegExp } from "./glob-pattern.ts";

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
export function globList(given: string, folder: string): GlobList {
  const patterns = listOf(given).map((pattern) => pattern.replace(/^(!?)(?:\.\/)+/, "$1"));
  if (patterns.some((pattern) => pattern.split("/").some((part) => part.split("*").length - 1 > MAX_STARS)))
    throw new SyntaxError("too many stars in one name");
  const wanted = patterns.filter((pattern) => !pattern.startsWith("!"));
  const unwanted = patterns.filter((pattern) => pattern.startsWith("!")).map((pattern) => pattern.slice(1));
  const names = wanted
    .flatMap((pattern) => pattern.split(/[/{},]/))
    .filter((part) => part !== "" && !/[*?[\]\\]/.test(part));
  return { wanted: sourceOf(wanted, folder), unwanted: sourceOf(unwanted, folder), named: names.join("\n") };
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
function listOf(given: string): string[] {
  const parts: string[] = [];
  let depth = 0;
  let part = "";
  for (const char of unquoted(given)) {
    if ("{[".includes(char)) depth += 1;
    if ("}]".includes(char)) depth = Math.max(0, depth - 1);
    if (depth === 0 && ",;|\n".includes(char)) {
      parts.push(part);
      part = "";
    } else part += char;
  }
  const found = [...parts, part].map((one) => one.trim()).filter((one) => one !== "");
  // Blanks separate only what could not be one name: each piece has a star.
  return found.flatMap((one) => {
    const pieces = one.split(/\s+/);
    return pieces.every((piece) => piece.includes("*")) ? pieces : [one];
  });
}

function unquoted(given: string): string {
  const list = /^\s*\[\s*("(?:[^"\\]|\\.)*"(?:\s*,\s*"(?:[^"\\]|\\.)*")*)\s*\]\s*$/.exec(given)?.[1];
  return list === undefined ? given : list.replace(/"((?:[^"\\]|\\.)*)"/g, "$1");
}
