/**
 * What a configuration file in the current folder may not set unless it was named: such a file may have come with
 * a cloned repository, so it may only narrow what the person's own settings allow. Pure.
 */
import type { AgentConfig } from "../../activities/config/agent-config.ts";
import { megabytes } from "../../activities/config/sizes.ts";
import { isGroup, type Group, type SettingPath } from "./config-aliases.ts";
import type { ConfigFile } from "./config-file.ts";

type Sandbox = AgentConfig["sandbox"];
/** Whether a value gives more rights than the value in force without it. */
type Widens<T> = (value: T, own: T, all: AgentConfig) => boolean;

const differs: Widens<unknown> = (value, own) => value !== own;
const more: Widens<number> = (value, own) => value > own;
/** Unset means no limit. */
const beyond = (value: number, own: number | undefined): boolean => value > (own ?? Infinity);
const larger: Widens<string> = (value, own) => megabytes(value) > megabytes(own);
/** From the most restricted to the most open. */
const NETWORKS: readonly string[] = ["none", "listed", "bridge"];

/** Gives no rights, whatever its value. */
const free: Widens<unknown> = () => false;

type Rule = (value: never, own: never, all: AgentConfig) => boolean;
interface Rules {
  /** `*` stands for every other name. */
  readonly [key: string]: Rule | Rules;
}

const SANDBOX: { readonly [Key in keyof Sandbox]?: Widens<Exclude<Sandbox[Key], undefined>> } = {
  image: differs,
  network: (value, own) => NETWORKS.indexOf(value) > NETWORKS.indexOf(own),
  // It only asks a person and grants nothing by itself.
  askForDomains: free,
  // If the sandbox may reach the whole internet, a list of domains only restricts it.
  domains: (value, own, all) =>
    all.sandbox.network !== "bridge" && value.some((domain) => !own.includes(domain)),
  allow: (value, own) => value.some((prefix) => !own.includes(prefix)),
  memory: larger,
  disk: larger,
  diskFree: (value, own, all) => larger(own, value, all),
  cpus: more,
  pids: more,
  runtime: differs,
  cache: (value, own) => value && !own,
  registries: (value, own) => value !== "none" && JSON.stringify(value) !== JSON.stringify(own),
  guard: (value, own) => value !== own && value === "best-effort",
  // Set-up commands run in the sandbox with the agent's rights, like its own commands.
  setup: free,
};

/**
 * Every setting that such a file may set, down to the last name: one that is not here, also a new one, is refused. Missing
 * are those that say which other model or server gets the conversation (fallbacks, the summaries' model, providers, MCP
 * servers), that have a person's authority (prompts, permissions), read the person's machine (folders of skills), or make
 * spending or what a provider stores larger or look smaller (prices, tiers, caches, fields of the request).
 */
const MAY_SET = {
  // The model of the session is shown at its start; one that the person has chosen stays.
  model: (value: string, own: string | undefined) => own !== undefined && value !== own,
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
  },
  instructions: { files: free, nested: free, maxBytes: free },
  skills: { enabled: free, paths: free, folders: (value: readonly string[]) => value.length > 0 },
  sandbox: SANDBOX,
} satisfies { readonly [Key in keyof AgentConfig]?: unknown };

/** The file's settings that give a session more rights than the person's own settings do. */
export function wideningSettings(file: ConfigFile, own: AgentConfig): SettingPath[] {
  const refused = (rules: Rules, group: Group, below: Group, path: SettingPath): SettingPath[] =>
    Object.entries(group).flatMap(([key, value]) => {
      const rule = Object.hasOwn(rules, key) ? rules[key] : rules["*"];
      const here = [...path, key];
      const ownValue = Object.hasOwn(below, key) ? below[key] : undefined;
      if (value === undefined) return [];
      if (typeof rule === "function") return rule(value as never, ownValue as never, own) ? [here] : [];
      if (rule === undefined || !isGroup(value)) return [here];
      return refused(rule, value, isGroup(ownValue) ? ownValue : {}, here);
    });
  return refused(MAY_SET, { ...file }, { ...own }, []);
}
