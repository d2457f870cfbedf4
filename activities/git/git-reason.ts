/** Finds in Git's error output what is wrong. Pure. */
import { cutChars } from "../text/cut.ts";
import { inOneLine, saysWhy } from "../contract/errors.ts";

/** As many as a delivery's row has for its reason. */
const MAX_CHARS = 500;

/** What Git adds to every failure, progress, and lines that only decorate. */
const NOISE =
  /^(hint:|warning:|Cloning into |To \S+$|Could not read from remote repository|Please make sure you have the correct access rights|and the repository exists|failed to push some refs|the remote end hung up|(Enumerating|Counting|Compressing|Receiving|Resolving) |Total \d|[^\p{L}\p{N}]*$)/iu;
/** What ssh says of a key or a host before it says that it failed. */
const OF_SSH =
  /^(Load key |Permissions \d+ for |Offending .* key in |Received disconnect|[@ ]*WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED)/;
const FAILURE = /^(fatal|error): */i;
const SERVER = /^remote: ?/;

/** Where to read more, and what only the server's operators need: after all else. */
const ASIDE =
  /^(Trace: |See |Learn (how|more)|Review all |\(\?\) Learn|For more information|https?:\/\/docs\.|Found \d+ violation)/i;
/**
 * The server's own words if it said any, the line with the cause first; else the first failure that Git names, else the last line.
 * Without control characters: a server's text must not draw on a terminal.
 */
export function gitReason(err: string): string {
  const all = err
    .replaceAll(/[^\P{Cc}\n]/gu, " ")
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "");
  const telling = all.filter((line) => !NOISE.test(bare(line)));
  const lines = telling.length > 0 ? telling : all;
  const server = lines.filter((line) => SERVER.test(line)).map(bare);
  if (server.length > 0) return asReason(causeFirst(unwrapped(server)));
  const first = lines.findIndex((line) => FAILURE.test(line));
  const at = first < 0 ? lines.length - 1 : first;
  const told = lines.slice(at, hasMore(lines[at]) ? at + 2 : at + 1);
  return asReason([...all.filter((line) => OF_SSH.test(line) && !told.includes(line)), ...told]);
}

/** A sentence that goes on in the next line, as one. */
const unwrapped = (lines: readonly string[]): string[] =>
  lines.reduce<string[]>((said, line) => {
    const last = said.at(-1);
    const goesOn = last !== undefined && /^\p{Ll}+ \p{L}/u.test(line) && /[\p{L}\p{N},]$/u.test(last);
    return goesOn ? [...said.slice(0, -1), `${last} ${line}`] : [...said, line];
  }, []);

/** All that a server, such as its hook, printed: the line that names the cause, the others in order, then where to read more. */
function causeFirst(lines: readonly string[]): string[] {
  const aside = lines.filter((line) => ASIDE.test(line));
  const telling = lines.filter((line) => !ASIDE.test(line));
  const at = telling.findIndex(saysWhy);
  const cause = telling.slice(Math.max(0, at), Math.max(0, at) + 1);
  return [...cause, ...telling.filter((line) => !cause.includes(line)), ...aside];
}

/** Such as `Repository lacks these prerequisite commits:`. */
const hasMore = (line: string | undefined): boolean => line?.endsWith(":") === true;

/** Without the sender, a failure's mark, and what only draws: bullets and rules. */
function bare(line: string): string {
  return line
    .replace(SERVER, "")
    .trim()
    .replace(FAILURE, "")
    .replace(/^(-|\*|@|\p{Pd}{2,}|[=#]{2,}) +(?:WARNING: )?/u, "")
    .replace(/\s*(@|\p{Pd}{2,}|[=#─━]{2,})$/u, "");
}

/** A clause that a sentence may end with. */
function asReason(lines: readonly string[]): string {
  const text = inOneLine(lines.map(bare));
  return cutChars(text.replace(/[.:]+$/, ""), MAX_CHARS) || "no reason was given";
}
