/** Hints are written as `longhaul COMMAND …` and printed so that they can be pasted literally. Pure. */

/** What may precede the name: a line's beginning, a space or sign, or a colour; not a path such as `bin/longhaul`. */
const BEFORE = String.raw`(?:^|(?<=[^\w./-])|(?<=\u001b\[\d{1,3}m))`;

/**
 * @param verbs the names of commands: other words after the name are prose
 * @param command the command that starts the program in the person's shell
 */
export function hintWriter(verbs: readonly string[], command: string): (text: string) => string {
  if (command === "longhaul") return (text) => text;
  const hint = new RegExp(`${BEFORE}longhaul (?=(?:${verbs.join("|")})(?![\\w-]))`, "gm");
  return (text) => text.replace(hint, () => `${command} `);
}
