/** The command that starts this program in the person's shell, for printed hints. */
import { shellWord } from "../console/format.ts";
import { accessSync, constants, realpathSync } from "node:fs";
import { delimiter, join, sep } from "node:path";
import { fileURLToPath } from "node:url";

const projectFolder = fileURLToPath(new URL("../../", import.meta.url)).replace(/[/\\]$/, "");

export interface Shell {
  /** Working folder of the shell into which hints are pasted. */
  readonly folder: string;
  readonly path: string;
  readonly project: string;
}

/** `longhaul` if it is installed, `npm run longhaul --` in the project's folder, else `node` with the script's whole path. */
export function ownCommand({ folder, path, project }: Shell): string {
  const script = join(project, "scripts", "longhaul.mjs");
  const folders = path.split(delimiter).filter((entry) => entry !== "" && !isOfNpm(entry));
  if (folders.some((entry) => isProgram(join(entry, "longhaul"), script))) return "longhaul";
  if (folder === project || folder.startsWith(project + sep)) return "npm run longhaul --";
  return `node ${shellWord(script)}`;
}

/** The shell that started this process. npm changes to the project's folder and sets INIT_CWD to the caller's. */
export function ownShell(): Shell {
  return {
    folder: process.env["INIT_CWD"] || currentFolder(),
    path: process.env["PATH"] ?? "",
    project: projectFolder,
  };
}

/** The current folder may have been removed: only commands that need it fail then. */
function currentFolder(): string {
  try {
    return process.cwd();
  } catch {
    return "";
  }
}

/** A command that works in every folder, for shell settings. */
export const wholeCommand = () => `node ${shellWord(join(projectFolder, "scripts", "longhaul.mjs"))}`;

/** npm and npx add such folders to the PATH of their child processes; the person's shell does not have them. */
function isOfNpm(folder: string): boolean {
  return folder.endsWith(join("node_modules", ".bin"));
}

function isProgram(file: string, script: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return realpathSync(file) === realpathSync(script);
  } catch {
    return false;
  }
}
