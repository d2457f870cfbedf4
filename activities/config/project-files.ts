/** The project's files that the agent gets from the start: its instructions and its skills. Pure. */
import type { RunConfig } from "./agent-config.ts";
import { isSkillFile, skillOf, type Skill } from "./skills.ts";

/** A file from a folder or a repository. */
interface ProjectFile {
  readonly path: string;
  readonly kind: string;
  readonly bytes?: Uint8Array;
}

type Settings = Pick<RunConfig, "instructions" | "skills">;

export interface ProjectFiles {
  /** Text of the folder's AGENTS.md, bounded. */
  readonly instructions: string | undefined;
  readonly skills: readonly Skill[];
}

/** For a session whose configuration is older than the setting. */
const MAX_INSTRUCTION_BYTES = 32 * 1024;
/** Front matter is short and at the beginning of a file. */
const MAX_SKILL_BYTES = 16 * 1024;

/** @param files with paths relative to the workspace */
export function projectFiles(files: readonly ProjectFile[], settings: Settings): ProjectFiles {
  return { instructions: instructionsOf(files, settings), skills: skillsOf(files, settings) };
}

function instructionsOf(files: readonly ProjectFile[], { instructions }: Settings): string | undefined {
  const { files: names = ["AGENTS.md"], maxBytes = MAX_INSTRUCTION_BYTES } = instructions ?? {};
  for (const name of names) {
    const file = files.find((entry) => entry.path === name);
    const text = file?.kind === "file" ? textOf(file.bytes, maxBytes) : "";
    if (text !== "") return text;
  }
  return undefined;
}

/** Sorted by path, so that a prompt does not depend on directory order. */
function skillsOf(files: readonly ProjectFile[], { skills }: Settings): Skill[] {
  const found: Skill[] = [];
  for (const file of files) {
    if (file.kind !== "file" || !isSkillFile(file.path, skills)) continue;
    found.push(skillOf(file.path, textOf(file.bytes, MAX_SKILL_BYTES)));
  }
  return found.toSorted((left, right) => (left.path < right.path ? -1 : 1));
}

/** A cut inside a character leaves a replacement character at the end, which is removed. */
function textOf(bytes: Uint8Array = new Uint8Array(), maxBytes: number): string {
  return new TextDecoder()
    .decode(bytes.subarray(0, maxBytes))
    .replace(/\uFFFD+$/, "")
    .replaceAll("\0", "");
}
