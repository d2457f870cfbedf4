/**
 * What a configuration file in the current folder may not set unless it was named: such a file may have come with
 * a cloned repository, so it may only narrow what the person's own settings allow. Pure.
 */
import type { AgentConfig } from "../../activities/config/agent-config.ts";
import { megabytes } from "../../activities/config/sizes.ts";
import type { ConfigFile } from "./config-file.ts";

export type SettingPath = readonly string[];

type Sandbox = AgentConfig["sandbox"];
/** Whether a value gives more rights than the value in force without it. */
type Widens<T> = (value: T, own: T) => boolean;

const differs: Widens<unknown> = (value, own) => value !== own;
const more: Widens<number> = (value, own) => value > own;
const larger: Widens<string> = (value, own) => megabytes(value) > megabytes(own);
/** From the most restricted to the most open. */
const NETWORKS: readonly string[] = ["none", "listed", "bridge"];

/** A sandbox setting that is not listed here counts as one that widens rights. */
const SANDBOX: { readonly [Key in keyof Sandbox]?: Widens<Exclude<Sandbox[Key], undefined>> } = {
  image: differs,
  network: (value, own) => NETWORKS.indexOf(value) > NETWORKS.indexOf(own),
  // It only asks a person and grants nothing by itself.
  askForDomains: () => false,
  domains: (value, own) => value.some((domain) => !own.includes(domain)),
  allow: (value, own) => value.some((prefix) => !own.includes(prefix)),
  memory: larger,
  disk: larger,
  diskFree: (value, own) => larger(own, value),
  cpus: more,
  pids: more,
  runtime: differs,
  cache: (value, own) => value && !own,
  registries: (value, own) => value !== "none" && JSON.stringify(value) !== JSON.stringify(own),
  guard: (value, own) => value !== own && value === "best-effort",
  // Set-up commands run in the sandbox with the agent's rights, like its own commands.
  setup: () => false,
};

/** All other settings widen rights: providers and MCP servers connect or run programs, a prompt overrides the user. */
const HARMLESS: readonly string[] = [
  "model",
  "models",
  "context",
  "tools",
  "limits",
  "instructions",
  "skills",
];

/** The file's settings that give a session more rights than the person's own settings do. */
export function wideningSettings(file: ConfigFile, own: AgentConfig): SettingPath[] {
  const rules: Readonly<Record<string, Widens<never> | undefined>> = SANDBOX;
  const sandbox = Object.entries(file.sandbox ?? {}).filter(
    ([key, value]) =>
      // If the sandbox may reach the whole internet, a list of domains only restricts it.
      !(key === "domains" && own.sandbox.network === "bridge") &&
      (rules[key]?.(value as never, own.sandbox[key as keyof Sandbox] as never) ?? true),
  );
  return [
    ...sandbox.map(([key]) => ["sandbox", key]),
    // This text would have the same authority as the operator's instructions.
    ...(file.instructions?.text === undefined ? [] : [["instructions", "text"]]),
    // These are folders of the person's machine.
    ...((file.skills?.folders ?? []).length === 0 ? [] : [["skills", "folders"]]),
    ...spendsMore(file, own).map((key) => ["limits", key]),
    ...Object.entries(file.models ?? {}).flatMap(([id, model]) =>
      ASKED_FOR.filter((key) => model[key] !== undefined).map((key) => ["models", id, key]),
    ),
    ...Object.keys(file)
      .filter((key) => key !== "sandbox" && !HARMLESS.includes(key))
      .map((key) => [key]),
  ];
}

/** Model settings that affect what the provider stores, what it charges, and the request rate. */
const ASKED_FOR = ["body", "tier", "rate"] as const;

/** Only the person decides how much to spend, what is stored, and how long to wait. */
function spendsMore({ limits }: ConfigFile, own: AgentConfig): string[] {
  const beyond = (["maxCostUsd", "deadline"] as const).filter(
    (key) => (limits?.[key] ?? 0) > (own.limits[key] ?? Infinity),
  );
  const maxSaved = limits?.maxSaved;
  return maxSaved !== undefined && larger(maxSaved, own.limits.maxSaved) ? [...beyond, "maxSaved"] : beyond;
}
