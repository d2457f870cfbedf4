/** Describes a tool call by its input. Pure. */

/** Its command, its path …; else the whole input. */
export function firstString(input: Record<string, unknown>): string {
  for (const name of ["command", "path", "pattern", "query", "handle", "id"]) {
    const value = input[name];
    if (typeof value === "string") return value;
  }
  return JSON.stringify(input);
}
