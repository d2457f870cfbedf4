/**
 * Text by a model, as it may be written on a forge: it calls nobody, closes nothing and commands nothing. Code stays as it is: forges do
 * not read it.
 */
import { shorten } from "../text/cut.ts";

/** The least of all forges' limits is GitHub's, with 65,536; a mark follows. */
const MAX_POST_CHARS = 60_000;
/** Not seen, and a break of the word for every forge. */
const JOINER = "\u2060";

/** Fenced code, up to its end or the text's, and code within a line. */
const CODE =
  /(^[ \t]*(`{3,}|~{3,})[^\n]*\n[\s\S]*?(?:^[ \t]*\2[ \t]*$|$(?![\s\S]))|(`+)[^`\n](?:[^\n]*?[^`\n])?\3(?!`))/gm;

/** A name that somebody would be notified by. */
const MENTION = /(^|[^\p{L}\p{N}_@/.`-])@(?=[\p{L}\p{N}_])/gu;

/** Words by which forges close an issue, in front of one. Source: their documentation. */
const CLOSING =
  /\b(clos(?:e[sd]?|ing)|fix(?:e[sd]|ing)?|resolv(?:e[sd]?|ing)|implement(?:s|ed|ing)?)(?=:?\s+(?:issues?\s+)?(?:[\w./-]*[#!]\d|[A-Z][A-Z\d]+-\d|https?:\/\/))/gi;

/** A line that GitLab would carry out. */
const COMMAND = /^(\s*)\/(?=[a-z])/gim;

/** @returns at most 60,000 characters */
export function harmlessPost(text: string): string {
  const parts: string[] = [];
  let end = 0;
  for (const code of text.matchAll(CODE)) {
    parts.push(disarmed(text.slice(end, code.index)), code[0]);
    end = code.index + code[0].length;
  }
  parts.push(disarmed(text.slice(end)));
  return shorten(parts.join(""), MAX_POST_CHARS);
}

function disarmed(prose: string): string {
  return prose
    .replace(MENTION, `$1@${JOINER}`)
    .replace(CLOSING, `$1${JOINER}`)
    .replace(COMMAND, `$1${JOINER}/`);
}
