/** The project as a person has it who cloned it, without what a run leaves. */
import { cpSync, mkdirSync, readdirSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { emptyFolder } from "./empty-folder.ts";
import { PROJECT } from "./program.ts";

const SOURCES =
  /^(activities|client|examples|scripts|temporal|worker|workflows|docs)$|^(package(-lock)?|tsconfig)\.json$/;

/** For one test. @param name of its folder. @returns its folder */
export function cloneProject(name = "longhaul"): string {
  const folder = join(emptyFolder(), name);
  mkdirSync(folder);
  for (const name of readdirSync(PROJECT).filter((entry) => SOURCES.test(entry)))
    cpSync(join(PROJECT, name), join(folder, name), { recursive: true });
  symlinkSync(join(PROJECT, "node_modules"), join(folder, "node_modules"));
  return folder;
}
