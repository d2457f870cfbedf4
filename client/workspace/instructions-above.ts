/** The instructions of a repository that apply to a folder within it: those of the folders above, which are not copied. */
import { lstatSync, readFileSync, realpathSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import type { RunConfig } from "../../activities/config/agent-config.ts";
import { projectFiles } from "../../activities/config/system-prompt.ts";
import { repositoryTop } from "./git-rules.ts";

type Settings = Pick<RunConfig, "instructions" | "skills">;

/**
 * The outermost first, because what is nearer counts more; then the folder's own.
 * @param own of the folder itself
 * @returns undefined if there are none
 */
export function withInstructionsAbove(
  folder: string,
  own: string | undefined,
  settings: Settings,
): string | undefined {
  const top = repositoryTop(folder);
  const above = top === undefined ? [] : foldersBetween(top, realpathSync(folder));
  const outer = above.flatMap((place) => {
    const text = instructionsIn(place, settings);
    return text === undefined ? [] : [`Instructions of ${relative(dirname(top ?? place), place)}/:\n${text}`];
  });
  if (outer.length === 0) return own;
  return [...outer, ...(own === undefined ? [] : [`Instructions of the workspace:\n${own}`])].join("\n\n");
}

/** From the top down, without the folder itself. */
function foldersBetween(top: string, folder: string): string[] {
  const found: string[] = [];
  for (let place = folder; place !== top && place !== dirname(place);) {
    place = dirname(place);
    found.unshift(place);
  }
  return found;
}

function instructionsIn(place: string, settings: Settings): string | undefined {
  const names = settings.instructions?.files ?? ["AGENTS.md"];
  const files = names.flatMap((path) => {
    const file = join(place, path);
    const isFile = lstatSync(file, { throwIfNoEntry: false })?.isFile() === true;
    return isFile ? [{ path, kind: "file", bytes: readFileSync(file) }] : [];
  });
  return projectFiles(files, settings).instructions;
}
