/**
 * A summary's list of the project instructions and skills that the session has read, by name, so that they can be
 * read again. Pure.
 */
import type { StoredMessage } from "../contract/message.ts";
import { callsIn, pathOf } from "./session-facts.ts";

const FOLDERS = "- Standing rules of the project's folders (read the file again before work there): ";
const SKILLS = "- Skills in use (read the file again before such work goes on): ";

/** Source: ours, some 500 tokens; if there are more, the newest are kept. */
const MAX_LIST_CHARS = 2_000;

/** @param before this section of the summary that is incorporated */
export function standingRules(rows: readonly StoredMessage[], before: string): string[] {
  const notes = rows.flatMap((row) => row.notes ?? []);
  const skills = callsIn(rows)
    .filter(({ call, result }) => call.toolName === "read_file" && result?.outcome === "completed")
    .map(({ call }) => pathOf(call))
    .filter((path) => path.endsWith("/SKILL.md") && !path.includes(","));
  return [list(FOLDERS, before, notes), list(SKILLS, before, skills)].filter((line) => line !== "");
}

/** Whether a line is one of these, which are regenerated for each summary. */
export const isStandingRule = (line: string): boolean => line.startsWith(FOLDERS) || line.startsWith(SKILLS);

function list(prefix: string, before: string, paths: readonly string[]): string {
  const line = before.split("\n").find((text) => text.startsWith(prefix));
  const known = line === undefined ? [] : line.slice(prefix.length).split(", ");
  const all = [...new Set([...known, ...paths])];
  while (all.join(", ").length > MAX_LIST_CHARS) all.shift();
  return all.length === 0 ? "" : `${prefix}${all.join(", ")}`;
}
