/** Which files and variables count for the configuration. A file that the person did not name explicitly may set less. */
import { existsSync, realpathSync } from "node:fs";
import { isAbsolute, join, relative, resolve } from "node:path";
import { agentConfigSchema, type AgentConfig } from "../../activities/config/agent-config.ts";
import { usageError } from "../console/errors.ts";
import {
  parseConfigFile,
  settingPlace,
  readConfig,
  type ConfigFile,
  isGroup,
  type Group,
  type SettingPath,
} from "./config-file.ts";
import type { Environment } from "../../activities/config/providers.ts";
import type { KeyDefinitions } from "../../activities/config/key-settings.ts";
import { megabytes } from "../../activities/config/setting-values.ts";

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
  readonly ownFile: { readonly path: string | undefined; readonly settings: ConfigFile };
  readonly notes: readonly string[];
}

/** @throws ClientError (usage) for mistakes, and for settings that need an explicitly named file */
export function readConfigFiles(flags: FileFlags, environment: Environment, cwd: string): ConfigFiles {
  const { path, notes, named } = findConfigFile(flags, environment, cwd);
  const ownPath = ownConfigFile(environment);
  const isOwn = ownPath === undefined || (path !== undefined && realpathSync(path) === realpathSync(ownPath));
  const separatePath = isOwn ? undefined : ownPath;
  const ownSettings =
    separatePath === undefined ? {} : parseConfigFile(separatePath, readConfig(separatePath, true));
  if (path === undefined)
    return { path, file: {}, ownFile: { path: separatePath, settings: ownSettings }, notes };
  const text = readConfig(path, named);
  const file = parseConfigFile(shortPath(path, cwd), text);
  if (!named && !(isOwn && ownPath !== undefined))
    refuseWidening(shortPath(path, cwd), text, file, ownSettings);
  return { path, file, ownFile: { path: separatePath, settings: ownSettings }, notes };
}

/** Definitions of keys for a worker that is started from here. @throws ClientError (usage) */
export function ownDefinitions(environment: Environment, cwd: string): KeyDefinitions {
  const named = setting(environment, "LONGHAUL_CONFIG");
  const files = [ownConfigFile(environment), named === undefined ? undefined : resolve(cwd, named)];
  return files.reduce<KeyDefinitions>((definitions, path) => {
    if (path === undefined || !existsSync(path)) return definitions;
    return { ...definitions, ...agentConfigSchema.parse(parseConfigFile(path, readConfig(path, true))).keys };
  }, {});
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
function refuseWidening(name: string, text: string, file: ConfigFile, ownSettings: ConfigFile): void {
  const widening = wideningSettings(file, agentConfigSchema.parse(ownSettings));
  if (widening.length === 0) return;
  const widenings = widening.map((path) => `${settingPlace(name, text, path)}: ${path.join(".")}`);
  throw usageError(
    `${name} in the current folder may not give a session more rights, because it may have come with a repository. It sets:\n${widenings.join("\n")}`,
    `If the file is yours, name it: --config ./${name}`,
  );
}

function findConfigFile(
  flags: FileFlags,
  environment: Environment,
  cwd: string,
): { path: string | undefined; named: boolean; notes: string[] } {
  const configFile = flags.config ?? setting(environment, "LONGHAUL_CONFIG");
  if (configFile !== undefined) {
    const path = resolve(cwd, configFile);
    if (!existsSync(path)) throw usageError(`There is no configuration file ${configFile}.`);
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

const shortPath = (path: string, cwd: string) => {
  const short = relative(cwd, path);
  return short === "" || short.startsWith("..") ? path : short;
};

type Sandbox = AgentConfig["sandbox"];
/** Whether a value gives more rights than the value in force without it. */
type Widens<T> = (value: T, current: T, all: AgentConfig) => boolean;

const differs: Widens<unknown> = (value, current) => value !== current;
const more: Widens<number> = (value, current) => value > current;
/** Unset means no limit. */
const beyond = (value: number, current: number | undefined): boolean => value > (current ?? Infinity);
const larger: Widens<string> = (value, current) => megabytes(value) > megabytes(current);
/** From the most restricted to the most open. */
const NETWORKS: readonly string[] = ["none", "listed", "bridge"];

/** Gives no rights, whatever its value. */
const free: Widens<unknown> = () => false;

type Rule = (value: never, current: never, all: AgentConfig) => boolean;
interface Rules {
  /** `*` stands for every other name. */
  readonly [key: string]: Rule | Rules;
}

const SANDBOX: { readonly [Key in keyof Sandbox]?: Widens<Exclude<Sandbox[Key], undefined>> } = {
  image: differs,
  network: (value, current) => NETWORKS.indexOf(value) > NETWORKS.indexOf(current),
  // It only asks a person and grants nothing by itself.
  askForDomains: free,
  // If the sandbox may reach the whole internet, a list of domains only restricts it.
  domains: (value, current, all) =>
    all.sandbox.network !== "bridge" && value.some((domain) => !current.includes(domain)),
  allow: (value, current) => value.some((prefix) => !current.includes(prefix)),
  memory: larger,
  disk: larger,
  diskFree: (value, current, all) => larger(current, value, all),
  cpus: more,
  pids: more,
  runtime: differs,
  cache: (value, current) => value && !current,
  registries: (value, current) => value !== "none" && JSON.stringify(value) !== JSON.stringify(current),
  guard: (value, current) => value !== current && value === "best-effort",
  // Set-up commands run in the sandbox with the agent's rights, like its own commands.
  setup: free,
  layers: free,
};

/**
 * Every setting that such a file may set, down to the last name: one that is not here, also a new one, is refused. Missing
 * are those that say which other model or server gets the conversation (fallbacks, the summaries' model, providers, MCP
 * servers), that have a person's authority (prompts, permissions), read the person's machine (folders of skills), or make
 * spending or what a provider stores larger or look smaller (prices, tiers, caches, fields of the request).
 */
const MAY_SET = {
  // The model of the session is shown at its start; one that the person has chosen stays.
  model: (value: string, current: string | undefined) => current !== undefined && value !== current,
  models: {
    "*": {
      contextWindow: free,
      maxOutput: free,
      maxInput: free,
      api: free,
      input: free,
      headroom: free,
      reasoning: { effort: free, summary: free, send: free },
      verbosity: free,
      imageDetail: free,
      temperature: free,
      tools: free,
    },
  },
  context: {
    strategy: free,
    options: {
      trigger: free,
      returnTrigger: free,
      keepMessages: free,
      keepRatio: free,
      headMessages: free,
      preserveLastNTurns: free,
      pruneProtect: free,
      pruneMinimum: free,
      prune: free,
      auto: free,
    },
  },
  tools: {
    parallel: free,
    "*": {
      timeout: free,
      limits: { maxTimeout: free, maxChars: free, maxLines: free, maxLineChars: free, maxMatches: free },
    },
  },
  limits: {
    maxSteps: more,
    maxHistoryEvents: free,
    modelTimeout: free,
    connectTimeout: free,
    firstTokenTimeout: free,
    silenceTimeout: free,
    thinkingTimeout: free,
    maxCostUsd: beyond,
    maxSaved: larger,
    onLimit: free,
    deadline: beyond,
    wrapUp: free,
    returnAfter: free,
    maxWait: more,
    maxWaits: more,
  },
  instructions: { files: free, nested: free, maxBytes: free },
  skills: { enabled: free, paths: free, folders: (value: readonly string[]) => value.length > 0 },
  sandbox: SANDBOX,
} satisfies { readonly [Key in keyof AgentConfig]?: unknown };

/** The file's settings that give a session more rights than the person's own settings do. */
export function wideningSettings(file: ConfigFile, ownSettings: AgentConfig): SettingPath[] {
  const refused = (rules: Rules, group: Group, below: Group, path: SettingPath): SettingPath[] =>
    Object.entries(group).flatMap(([key, value]) => {
      const rule = Object.hasOwn(rules, key) ? rules[key] : rules["*"];
      const here = [...path, key];
      const ownValue = Object.hasOwn(below, key) ? below[key] : undefined;
      if (value === undefined) return [];
      if (typeof rule === "function")
        return rule(value as never, ownValue as never, ownSettings) ? [here] : [];
      if (rule === undefined || !isGroup(value)) return [here];
      return refused(rule, value, isGroup(ownValue) ? ownValue : {}, here);
    });
  return refused(MAY_SET, { ...file }, { ...ownSettings }, []);
}

/**
 * * What a configuration file in the current folder may not set unless it was named: such a file may have come with
 * a cloned repository, so it may only narrow what the person's own settings allow.
 */
export function setting(environment: Environment, name: string): string | undefined {
  const value = environment[name]?.trim();
  return value === undefined || value === "" ? undefined : value;
}
