/** A commit's instructions and skills for the agent, read from the worker's mirror. */
import type { RunConfig } from "../config/agent-config.ts";
import { isSkillFile } from "../config/skills.ts";
import type { GitAccess } from "./git-access.ts";
import { git } from "./run-git.ts";

/** Larger ones are not treated as instructions. */
const MAX_FILE_BYTES = 1024 * 1024;
/** The most that a prompt may name. */
const MAX_SKILLS = 500;

/** Instructions in the root, and skills: only plain files, since a link may lead anywhere. */
export async function projectFilesIn(
  access: GitAccess,
  mirror: string,
  commit: string,
  { instructions, skills }: Pick<RunConfig, "instructions" | "skills">,
) {
  const names = instructions?.files ?? ["AGENTS.md"];
  const folders = skills?.paths ?? [".agents/skills"];
  const listed = await git(
    access,
    ["ls-tree", "-r", "-l", "--full-tree", commit, "--", ...names, ...folders],
    { cwd: mirror },
  );
  const found: { readonly kind: "file"; readonly path: string; readonly bytes: Uint8Array }[] = [];
  for (const [, object = "", size = "", path = ""] of listed.matchAll(
    /^100\d{3} blob ([0-9a-f]{40,64}) +(\d+)\t([^"\n].*)$/gm,
  )) {
    if (!names.includes(path) && !isSkillFile(path, skills)) continue;
    if (Number(size) > MAX_FILE_BYTES || found.length > MAX_SKILLS) continue;
    const text = await git(access, ["cat-file", "blob", object], { cwd: mirror });
    found.push({ kind: "file", path, bytes: new TextEncoder().encode(text) });
  }
  return found;
}
