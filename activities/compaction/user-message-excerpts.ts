/** What a person said and is not shown word for word any more: lines of a summary's first section. Pure. */
import { cutChars } from "../contract/cut-text.ts";
import type { StoredMessage } from "../contract/message.ts";
import { textOf } from "./session-facts.ts";
import { excerpt } from "./summary-document.ts";

export const SAID_HEADER = "Said later by the user, oldest first:";

/** Longest line, once something newer was said. */
const SAID_CHARS = 300;
/** The newest message is the agent's current order: if it was too long to keep, it gets this much of the lines' room. */
const NEWEST_SHARE = 0.6;

/** The lines of a section as it was written. */
export function parseSaid(originalTask: string): string[] {
  const [, list = ""] = originalTask.split(`${SAID_HEADER}\n`);
  return list.split("\n").flatMap((line) => (line.startsWith("- ") ? [line.slice(2)] : []));
}

/** Whether a line is the other, perhaps shortened since: `excerpt` leaves all but two characters of what it shortens to. */
export function isSameSaying(first: string, second: string): boolean {
  return cutChars(first, SAID_CHARS - 2) === cutChars(second, SAID_CHARS - 2);
}

/**
 * A line for each message, oldest first: those of the section before, then those that are replaced now. What does not fit
 * `maxChars` any more is the oldest; `search_history` still finds it.
 */
export function saidLines(
  {
    replaced,
    kept,
  }: { readonly replaced: readonly StoredMessage[]; readonly kept: readonly StoredMessage[] },
  sectionBefore: string,
  maxChars: number,
): string[] {
  const rows = replaced.filter((row) => row.kind === "guidance");
  const isShown = kept.some((row) => row.kind === "guidance");
  const before = parseSaid(sectionBefore);
  const said = rows.flatMap((row) => {
    const messages = messagesIn(row);
    const isNewest = !isShown && row === rows.at(-1);
    const most = isNewest ? Math.max(SAID_CHARS, (maxChars * NEWEST_SHARE) / messages.length) : SAID_CHARS;
    return messages.map((message) => excerpt(message, most));
  });
  const isOld = isShown || said.length > 0;
  const lines = [...before.map((line) => (isOld ? excerpt(line, SAID_CHARS) : line)), ...said];
  const beside = lines.reduce((sum, line) => sum + Math.max(0, line.length - SAID_CHARS), 0);
  while (lines.length > 0 && lines.join("\n").length > maxChars + beside) lines.shift();
  return lines;
}

/** The messages of a row that several became one in (`coalesce`), each in one line with its label. */
function messagesIn(row: StoredMessage): string[] {
  return textOf(row)
    .split(/\n+(?=(?:Also|\[\d+\]):(?:\s|$))/)
    .map((message) => message.replaceAll(/\s+/g, " ").trim());
}
