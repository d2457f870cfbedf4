/** What a tool call is about, from what it was given. Pure. */

/** Its command, its path …; else all it was given. */
export function firstString(input: Record<string, unknown>): string {
  for (const name of ["command", "path", "pattern", "query", "handle", "id"]) {
    const value = input[name];
    if (typeof value === "string") return value;
  }
  return JSON.stringify(input);
}
