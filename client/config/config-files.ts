/** Finds the configuration files. A file that the person did not name explicitly may set less. */
import { existsSync, realpathSync } from "node:fs";
import { isAbsolute, join, relative, resolve } from "node:path";
import { agentConfigSchema } from "../../activities/config/agent-config.ts";
import { usageError } from "../console/errors.ts";
import { parseConfigFile, placeOf, readConfig, type ConfigFile } from "./config-file.ts";
import { wideningSettings } from "./config-rights.ts";
import type { Environment } from "../../activities/config/providers.ts";
import { setting } from "./environment.ts";

export const CONFIG_NAME = "longhaul.yaml";

/** The flags that decide which files count. */
interface FileFlags {
  readonly config?: string | undefined;
  readonly workspace?: string | undefined;
}

interface ConfigFiles {
  /** The file named by the person, or the one in the current folder. */
  readonly path: string | undefined;
  readonly file: ConfigFile;
  readonly own: { readonly path: string | undefined; readonly settings: ConfigFile };
  readonly notes: readonly string[];
}

/** @throws ClientError (usage) for mistakes, and for settings that need an explicitly named file */
export function readConfigFiles(flags: FileFlags, environment: Environment, cwd: string): ConfigFiles {
  const { path, notes, named } = findConfigFile(flags, environment, cwd);
  const ownPath = ownConfigFile(environment);
  const isOwn = ownPath === undefined || (path !== undefined && realpathSync(path) === realpathSync(ownPath));
  const own = isOwn ? undefined : ownPath;
  const ownSettings = own === undefined ? {} : parseConfigFile(own, readConfig(own, true));
  if (path === undefined) return { path, file: {}, own: { path: own, settings: ownSettings }, notes };
  const text = readConfig(path, named);
  const file = parseConfigFile(shown(path, cwd), text);
  if (!named && !(isOwn && ownPath !== undefined)) refuseWidening(shown(path, cwd), text, file, ownSettings);
  return { path, file, own: { path: own, settings: ownSettings }, notes };
}

/** The person's own file, if there is one. Source: the XDG Base Directory Specification. */
function ownConfigFile(environment: Environment): string | undefined {
  const [xdg, home] = [setting(environment, "XDG_CONFIG_HOME"), setting(environment, "HOME")];
  const folder = xdg !== undefined && isAbsolute(xdg) ? xdg : home && join(home, ".config");
  if (folder === undefined) return undefined;
  const path = join(folder, "longhaul", CONFIG_NAME);
  return existsSync(path) ? path : undefined;
}

/** The file may come from a cloned repository, so it must not widen the rights that the person's own settings give. */
function refuseWidening(name: string, text: string, file: ConfigFile, own: ConfigFile): void {
  const widening = wideningSettings(file, agentConfigSchema.parse(own));
  if (widening.length === 0) return;
  const found = widening.map((path) => `${placeOf(name, text, path)}: ${path.join(".")}`);
  throw usageError(
    `${name} in the current folder may not give a session more rights, because it may have come with a repository. It sets:\n${found.join("\n")}`,
    `If the file is yours, name it: --config ./${name}`,
  );
}

function findConfigFile(
  flags: FileFlags,
  environment: Environment,
  cwd: string,
): { path: string | undefined; named: boolean; notes: string[] } {
  const given = flags.config ?? setting(environment, "LONGHAUL_CONFIG");
  if (given !== undefined) {
    const path = resolve(cwd, given);
    if (!existsSync(path)) throw usageError(`There is no configuration file ${given}.`);
    return { path, named: true, notes: [] };
  }
  const path = join(cwd, CONFIG_NAME);
  if (!existsSync(path)) return { path: undefined, named: false, notes: [] };
  if (flags.workspace !== undefined && isInside(cwd, resolve(cwd, flags.workspace))) {
    return {
      path: undefined,
      named: false,
      notes: [`${CONFIG_NAME} is in the workspace, so it is not read. To use it: --config ./${CONFIG_NAME}`],
    };
  }
  return { path, named: false, notes: [] };
}

/** Resolves all links. */
function isInside(folder: string, outer: string): boolean {
  const path = relative(existsSync(outer) ? realpathSync(outer) : outer, realpathSync(folder));
  return path === "" || (!path.startsWith("..") && !isAbsolute(path));
}

const shown = (path: string, cwd: string) => {
  const short = relative(cwd, path);
  return short === "" || short.startsWith("..") ? path : short;
};
