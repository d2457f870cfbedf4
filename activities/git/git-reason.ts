/** Finds in Git's error output the line that says what is wrong. Pure. */
import { cutChars } from "../contract/cut-text.ts";

const MAX_CHARS = 600;

/** What Git adds to every failure, progress, and lines that only decorate. */
const NOISE =
  /^(hint:|warning:|Cloning into |To \S+$|Could not read from remote repository|Please make sure you have the correct access rights|and the repository exists|failed to push some refs|the remote end hung up|(Enumerating|Counting|Compressing|Receiving|Resolving) |Total \d|[^\p{L}\p{N}]*$)/iu;
const FAILURE = /^(fatal|error): */i;
const SERVER = "remote: ";

/**
 * The server's own words if it said any, else the first failure that Git names, else the last line. Without control
 * characters: a server's text must not draw on a terminal.
 */
export function gitReason(err: string): string {
  const all = err
    .replaceAll(/[^\P{Cc}\n]/gu, " ")
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "");
  const telling = all.filter((line) => !NOISE.test(bare(line)));
  const lines = telling.length > 0 ? telling : all;
  const server = lines.filter((line) => line.startsWith(SERVER)).map((line) => line.slice(SERVER.length));
  if (server.length > 0) return asReason(serverWords(server));
  const first = lines.findIndex((line) => FAILURE.test(line));
  const at = first < 0 ? lines.length - 1 : first;
  return asReason(lines.slice(at, hasMore(lines[at]) ? at + 2 : at + 1));
}

/** What a server, such as its hook, printed: two lines, from the first that names a failure. */
function serverWords(lines: readonly string[]): string[] {
  const at = lines.findIndex((line) => /error|fail|denied|declined|refused|reject|not allowed/i.test(line));
  return lines.slice(Math.max(0, at)).slice(0, 2);
}

/** Such as `Repository lacks these prerequisite commits:`. */
const hasMore = (line: string | undefined): boolean => line?.endsWith(":") === true;

function bare(line: string): string {
  return line.replace(/^remote: */, "").replace(FAILURE, "");
}

/** A clause that a sentence may end with. */
function asReason(lines: readonly string[]): string {
  const text = lines.map(bare).join(" ");
  return cutChars(text.replace(/[.:]+$/, ""), MAX_CHARS) || "no reason was given";
}
