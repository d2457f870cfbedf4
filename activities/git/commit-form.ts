/** Commits as Git stores them, and how they are written anew. Pure; a commit is text of one byte a character, whatever its encoding. */
import type { CommitStyle, GitIdentity } from "../config/commit-settings.ts";

export interface CommitParts {
  /** Each with its lines of continuation, in order. */
  readonly headers: readonly (readonly [name: string, value: string])[];
  /** All after the headers, as it is. */
  readonly message: string;
}

/** A commit's object. */
export function parseCommit(raw: string): CommitParts {
  const end = raw.indexOf("\n\n");
  const head = end < 0 ? raw.replace(/\n$/, "") : raw.slice(0, end);
  const headers = head.split(/\n(?! )/).map((line): readonly [string, string] => {
    const space = line.indexOf(" ");
    return space < 0 ? [line, ""] : [line.slice(0, space), line.slice(space + 1)];
  });
  return { headers, message: end < 0 ? "" : raw.slice(end + 2) };
}

export function formatCommit({ headers, message }: CommitParts): string {
  return `${headers.map(([name, value]) => `${name} ${value}\n`).join("")}\n${message}`;
}

const bytesOf = (text: string): string => Buffer.from(text).toString("latin1");

/** What Git leaves of a name or an address. Source: its `ident.c`, which strips blanks and these characters from both ends. */
export const asStoredName = (text: string): string =>
  // oxlint-disable-next-line no-control-regex
  bytesOf(text.replaceAll(/[<>\n]/g, "").replace(/^[\0-\x20.,:;"\\']+|[\0-\x20.,:;"\\']+$/g, ""));

const PERSON = /^(.*?) ?<([^>]*)> (\d+) ([+-]\d{4})$/s;

/** Whether the address of a person in a header is this one. */
const isBy = (value: string, { email }: GitIdentity): boolean =>
  PERSON.exec(value)?.[2] === asStoredName(email);

/** When a person's header was written, in seconds of Unix time; 0 if it does not say. */
export const timeIn = (value: string | undefined): number => Number(PERSON.exec(value ?? "")?.[3] ?? 0);

export const findHeader = ({ headers }: CommitParts, name: string): string | undefined =>
  headers.find(([other]) => other === name)?.[1];

/**
 * The commit with other parents and in the session's style, without a signature, since that is of what it was.
 * @param parents new names by the old ones
 * @returns undefined if its encoding has no place for what is written into it
 */
export function restyled(
  commit: CommitParts,
  { agent, author, trailers }: CommitStyle,
  parents: ReadonlyMap<string, string>,
): CommitParts | undefined {
  const isAuthored = isBy(findHeader(commit, "author") ?? "", agent);
  const headers = commit.headers
    .filter(([name]) => name !== "gpgsig" && name !== "gpgsig-sha256")
    .map(([name, value]): readonly [string, string] => {
      if (name === "parent") return [name, parents.get(value) ?? value];
      return name === "author" && isAuthored ? [name, renamed(value, author)] : [name, value];
    });
  const encoding = findHeader(commit, "encoding") ?? "utf-8";
  const written = [author.name, author.email, ...trailers].join("");
  if (!/^utf-?8$/i.test(encoding) && /[^\0-\x7F]/.test(written)) return undefined;
  return { headers, message: withTrailers(commit.message, trailers.map(bytesOf)) };
}

function renamed(value: string, { name, email }: GitIdentity): string {
  const [, , , time, zone] = PERSON.exec(value) ?? [];
  return `${asStoredName(name)} <${asStoredName(email)}> ${time} ${zone}`;
}

const TRAILER_LINE = /^([A-Za-z0-9-]+): ?\S/;

/** With lines at its end that it does not have yet: in its last paragraph, if that has nothing but such lines. */
function withTrailers(message: string, lines: readonly string[]): string {
  const text = message.replace(/\s+$/, "");
  const paragraphs = text.split(/\n[ \t]*\n/);
  const last = paragraphs.length > 1 ? (paragraphs.at(-1) ?? "").split("\n") : [];
  const isBlock =
    last.length > 0 &&
    last.every((line) => TRAILER_LINE.test(line) || /^[ \t]|^\(cherry picked from commit /.test(line));
  const there = new Set((isBlock ? last : []).map((line) => line.toLowerCase()));
  const added = [...new Set(lines)].filter((line) => !there.has(line.toLowerCase()));
  if (added.length === 0) return message;
  return `${text}${isBlock ? "\n" : "\n\n"}${added.join("\n")}\n`;
}

/** @param header `gpgsig`, or `gpgsig-sha256` in a repository with names of that length */
export function withSignature(
  { headers, message }: CommitParts,
  signature: string,
  header: string,
): CommitParts {
  return { headers: [...headers, [header, signature.trimEnd().replaceAll("\n", "\n ")]], message };
}

/**
 * Whether a commit on the forge is this one, written in whatever style and signed with whatever key: the same files on the same parents
 * at the same times, and a message that begins with its.
 */
export function isSameWork(written: CommitParts, own: CommitParts): boolean {
  const facts = (commit: CommitParts) =>
    JSON.stringify([
      ...commit.headers.filter(([name]) => name === "tree" || name === "parent"),
      ...["author", "committer"].map((name) => timeIn(findHeader(commit, name))),
    ]);
  return facts(written) === facts(own) && written.message.startsWith(own.message.trimEnd());
}
