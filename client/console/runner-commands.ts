/**
 * Build runners read commands in the output of what they run (`::add-mask::…`, `##vso[…]`): they set variables, hide words and
 * stop steps. What a model or a repository wrote must not give them any.
 */

import { cutTail } from "../../activities/text/cut.ts";

/** Variables that a runner sets for its steps. Source: their documentation. */
const RUNNERS = [
  "CI",
  "GITHUB_ACTIONS",
  "GITEA_ACTIONS",
  "FORGEJO_ACTIONS",
  "TF_BUILD",
  "TEAMCITY_VERSION",
  "GITLAB_CI",
  "TRAVIS",
  "BUILDKITE",
  "OctopusDeploymentId",
] as const;

/** Whether this process's output is read by a build runner. */
export const isInRunner = (environment: Readonly<Record<string, string | undefined>>): boolean =>
  RUNNERS.some((name) => !["", "false", "0"].includes(environment[name]?.toLowerCase() ?? ""));

/**
 * Colours, and what nobody sees: some runners remove it before they look at a line. GitHub's takes away what .NET calls a blank, which
 * U+0085 is too; others take away control characters.
 */
// oxlint-disable-next-line no-control-regex -- colours are what this is about
const COLOURS = String.raw`(?:\u001b\[[\d;]{0,20}m)*`;
const LEADING = String.raw`(?:\u001b\[[\d;]{0,20}m|(?![\r\n\u001b])[\s\p{C}\p{Z}])*`;
/** GitHub, Gitea, Forgejo: at the beginning of a line. The blank goes between the colons. */
const AT_START = new RegExp(String.raw`((?:^|[\r\n])${LEADING}:)${COLOURS}:`, "gu");
/** Anywhere in a line: Azure, TeamCity, Octopus, the older form of GitHub's, GitLab's and Travis' sections. */
const ANYWHERE = new RegExp(
  String.raw`(#${COLOURS}#)(?:[\w-]|\u001b\[[\d;]{0,20}m){0,20}\[|(section)_(?:start|end):|(travis)_(?:fold|time):`,
  "gi",
);
const MAX_COMMAND_CHARS = 200;

export interface RunnerGuard {
  /** The same piece of output, with a blank in each command's prefix. Pieces may end anywhere. */
  push(piece: string): string;
}

/** One for each stream, because a command may arrive in pieces. */
export function createRunnerGuard(): RunnerGuard {
  let line = "";
  return {
    push(piece) {
      const broken = breakCommands(line, piece);
      line = lineEnd(line + piece);
      return broken;
    },
  };
}

/** Whether a runner may read a command somewhere in a text that begins a line. */
export const hasRunnerCommand = (text: string): boolean => breakCommands("", text) !== text;

/** @param line what stands before the piece on its first line */
function breakCommands(line: string, piece: string): string {
  const text = line + piece;
  const offsets = new Set<number>();
  const add = (offset: number, end: number): void => {
    // What was written before cannot be changed, but a command needs all of its prefix.
    if (end > line.length) offsets.add(Math.max(offset, line.length));
  };
  for (const { 0: found, 1: front = "", index } of text.matchAll(AT_START))
    add(index + front.length, index + found.length);
  for (const { 0: found, index, ...names } of text.matchAll(ANYWHERE))
    add(index + (names[1] ?? names[2] ?? names[3] ?? "").length, index + found.length);
  let out = "";
  let at = line.length;
  for (const insertAt of [...offsets].toSorted((a, b) => a - b)) {
    out += `${text.slice(at, insertAt)} `;
    at = insertAt;
  }
  return out + text.slice(at);
}

/** As much of the last line as a command in it may need; nothing if a line begins here. */
function lineEnd(text: string): string {
  const last = text.slice(Math.max(text.lastIndexOf("\n"), text.lastIndexOf("\r")) + 1);
  if (new RegExp(`^${LEADING}$`, "u").test(last)) return "";
  return last.length <= 2 * MAX_COMMAND_CHARS ? last : `x${cutTail(last, MAX_COMMAND_CHARS)}`;
}
