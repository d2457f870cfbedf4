/** The person's own skills: read when a session starts, and stored with it. */
import { readdirSync } from "node:fs";
import { join, resolve } from "node:path";
import { readBoundedText } from "../console/read-bounded-text.ts";
import type { SessionSkills } from "../../activities/config/skill-settings.ts";
import { usageError, unreadable } from "../console/errors.ts";
import { bytes } from "../console/format.ts";

/** Total size in bytes: the skills are sent each time a worker opens the sandbox. Source: ours, some hundred skills. */
const MAX_BYTES = 256 * 1024;
/** Enough for SKILL.md, its references and its scripts. */
const MAX_DEPTH = 4;
const NAME = /^(?!\.)[\w.-]{1,100}$/;

/** @throws ClientError (usage) if a folder cannot be read, or the skills are too large */
export function withSharedSkills<T extends SessionSkills | undefined>(
  skills: T,
  cwd: string,
): T | SessionSkills {
  if (skills === undefined || skills.enabled === false || (skills.folders ?? []).length === 0) return skills;
  const found = new Map<string, string>();
  for (const folder of skills.folders ?? []) {
    try {
      walk(resolve(cwd, folder), "", 0, found);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === undefined) throw error;
      throw unreadable(`skills.folders: ${folder}`, error);
    }
  }
  const size = [...found.values()].reduce((sum, text) => sum + Buffer.byteLength(text), 0);
  if (size > MAX_BYTES)
    throw usageError(
      `skills.folders: the skills take ${bytes(size)}; at most ${bytes(MAX_BYTES)} can be included.`,
      "Keep large files in the workspace, or in the sandbox's image.",
    );
  const shared = [...found].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([path, text]) => ({ path, text }));
  return { ...skills, shared };
}

/** Reads plain text files only. If several folders contain the same path, the first one wins. */
function walk(root: string, below: string, depth: number, found: Map<string, string>): void {
  for (const entry of readdirSync(join(root, below), { withFileTypes: true })) {
    const path = below === "" ? entry.name : `${below}/${entry.name}`;
    if (!NAME.test(entry.name)) continue;
    if (entry.isDirectory() && depth < MAX_DEPTH) walk(root, path, depth + 1, found);
    if (!entry.isFile() || depth === 0 || found.has(path)) continue;
    const text = readBoundedText(join(root, path));
    if (!text.includes("\0")) found.set(path, text);
  }
}
