/** The message of a commit that `apply` makes, for those who read the log. Pure. */
import { cutChars, shorten } from "../../activities/text/cut.ts";

/** What Git's own tools show of a subject. */
const MAX_SUBJECT = 72;
/** A task may be a whole document. */
const MAX_BODY = 4_000;

/** The task as subject; all of it as body if that says more; and the session as trailer. */
export function commitMessage(task: string, sessionId: string): string {
  const text = task.trim();
  const subject = subjectOf(text);
  const says = text.replace(/\.$/, "") === subject ? [] : [shorten(text, MAX_BODY)];
  return `${[subject, ...says, `Longhaul-Session: ${sessionId}`].join("\n\n")}\n`;
}

function subjectOf(text: string): string {
  // The mark of a heading in Markdown is no word.
  const line = (text.split("\n", 1)[0] ?? "").replace(/^#+\s+/, "").trim();
  // Its first sentence; a shorter one may be an abbreviation.
  const [sentence = line] = /^.{12,}?[.!?](?=\s)/.exec(line) ?? [];
  const said = (line.length <= MAX_SUBJECT ? line : sentence).replace(/[.:]$/, "");
  if (said.length <= MAX_SUBJECT) return said;
  const cut = cutChars(said, MAX_SUBJECT - 1);
  // Between words, unless one is that long.
  const end = cut.lastIndexOf(" ");
  return `${end > MAX_SUBJECT / 2 ? cut.slice(0, end) : cut}…`;
}
