/** Excerpts of user messages that are no longer shown verbatim: lines of a summary's first section. Pure. */
import { cutChars } from "../text/cut.ts";
import type { StoredMessage } from "../contract/message.ts";
import { textOf } from "./session-facts.ts";
import { excerpt } from "./summary-document.ts";

export const SAID_HEADER = "Said later by the user, oldest first:";

/** Longest line of a message that is not the newest. */
const SAID_CHARS = 300;
/** The newest message is the agent's current task: if it was too long to keep, its line gets this share of the room. */
const NEWEST_SHARE = 0.6;

/** The excerpt lines of a section. */
export function parseSaid(originalTask: string): string[] {
  const [, list = ""] = originalTask.split(`${SAID_HEADER}\n`);
  return list.split("\n").flatMap((line) => (line.startsWith("- ") ? [line.slice(2)] : []));
}

/** Whether one line is the other, perhaps shortened since: `excerpt` keeps all but two characters of the length it cuts to. */
export function isSameSaying(first: string, second: string): boolean {
  return cutChars(first, SAID_CHARS - 2) === cutChars(second, SAID_CHARS - 2);
}

/**
 * One line per message, oldest first: the previous section's lines, then the messages replaced now. Beyond `maxChars`
 * the oldest are dropped; `search_history` still finds them.
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

/** The messages that were merged into a row (`coalesce`), each on one line with its label. */
function messagesIn(row: StoredMessage): string[] {
  return textOf(row)
    .split(/\n+(?=(?:Also|\[\d+\]):(?:\s|$))/)
    .map((message) => message.replaceAll(/\s+/g, " ").trim());
}
