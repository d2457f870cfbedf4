/**
 * Resolves a session's configuration from the person's own file, the project's file, the environment and the flags; later
 * ones take precedence. The client's only reader of the environment. Nothing is ever read from a workspace.
 */
import {
  agentConfigSchema,
  type AgentConfig,
  type RunConfig,
  type QuestionMode,
} from "../../activities/config/agent-config.ts";
import {
  defaultModel,
  REHEARSAL_MODEL,
  type ModelFacts,
  currentModelFacts,
} from "../../activities/config/models.ts";
import { issueText } from "../../activities/config/issue-text.ts";
import { imageNamed } from "../../activities/config/sandbox-settings.ts";
import { isInRunner } from "../console/runner-commands.ts";
import { secretsOf } from "../../activities/redaction/secret-values.ts";
import { createSanitizer, type Sanitizer } from "../../activities/redaction/sanitizer.ts";
import type { ModelTarget } from "../../activities/config/model-target.ts";
import { resolveRun, type RunResolution } from "../../activities/config/resolve-run.ts";
import { keyNotes, missingVariables, type Environment } from "../../activities/config/providers.ts";
import { layered, type ConfigFile } from "./config-file.ts";
import { CONFIG_NAME, readConfigFiles, setting } from "./config-files.ts";
import { checkedName, namesByToken } from "./people.ts";
import { checkKeyNames, checkKeyValues, workerKeys } from "./session-keys.ts";
import { type SandboxFlags, withSandboxFlags } from "./devcontainer.ts";
import { ClientError, missing, usageError, unreadable } from "../console/errors.ts";
import { placedProviders } from "../../worker/read-policy.ts";
import { withMachine } from "../registries/session-registries.ts";
import { definedFields } from "../console/format.ts";
import { bytes } from "../../activities/text/format.ts";
import { readdirSync } from "node:fs";
import { join, resolve } from "node:path";
import { readBoundedText } from "../console/read-bounded-text.ts";
import type { SessionSkills } from "../../activities/config/skills.ts";

export type { Environment };

export interface ConfigFlags extends SandboxFlags {
  readonly config?: string | undefined;
  readonly model?: string | undefined;
  readonly maxSteps?: number | undefined;
  /** USD. */
  readonly maxCost?: number | undefined;
  /** In ms. */
  readonly deadline?: number | undefined;
  readonly questions?: QuestionMode | undefined;
  /** Commands that decide whether the work is done. */
  readonly verify?: readonly string[] | undefined;
  /** False if services and workers are elsewhere. */
  readonly setup?: boolean | undefined;
  /** The uploaded folder: no configuration is read from it. */
  readonly workspace?: string | undefined;
  /** What servers report about models that are not in the catalogue. */
  readonly served?: ModelFacts["served"];
}

export interface ResolvedConfig {
  readonly run: RunConfig;
  readonly settings: AgentConfig;
  /** Whether a person has set `limits.maxSteps`. */
  readonly isStepsChosen: boolean;
  /** True if no key was found and no model was named. */
  readonly rehearsal: boolean;
  /** The file that was read; the project's if there are two. */
  readonly file: string | undefined;
  /** Notes for the person, one per line. */
  readonly notes: readonly string[];
  /** The models that are in no table: their servers are asked. */
  readonly unlisted: readonly ModelTarget[];
}

/**
 * Resolves the configuration of a new session.
 * @throws ClientError: usage for wrong or unknown settings, missing for a missing credential
 */
export function resolveConfig(
  flags: ConfigFlags,
  environment: Environment = process.env,
  cwd: string = process.cwd(),
): ResolvedConfig {
  const { path, file, ownFile, notes, settings } = readMerged(flags, environment, cwd);
  const chosen = settings.model ?? defaultModel(environment);
  // Wrong usage is reported before missing credentials.
  const { run, ...resolved } = runConfigOf(settings, chosen ?? REHEARSAL_MODEL, environment, flags.served);
  // If the workers are elsewhere, so are the keys.
  const isWorkerHere = flags.setup !== false && !isSetupOff(environment);
  checkKeyNames(run.sandbox, isWorkerHere ? workerKeys(environment, cwd) : undefined, settings.keys);
  if (isWorkerHere) requireCredentials(run, environment);
  if (isWorkerHere) checkKeyValues(run.sandbox, environment);
  const machine = withMachine(run.sandbox, environment, cwd);
  return {
    run: { ...run, sandbox: machine.sandbox, skills: withSharedSkills(run.skills, cwd) },
    settings,
    isStepsChosen: (flags.maxSteps ?? layered(ownFile.settings, file).limits?.maxSteps) !== undefined,
    rehearsal: chosen === undefined,
    file: path ?? ownFile.path,
    unlisted: resolved.unlisted,
    notes: [
      ...notes,
      ...resolved.notes,
      ...machine.notes,
      ...(chosen === undefined ? keyNotes(environment, settings.providers) : []),
    ],
  };
}

/** The model that a session started now would use. */
export interface ModelChoice {
  readonly target: ModelTarget;
  /** Other usable models, one per line, if none was chosen and the rehearsal model is used. */
  readonly hints: readonly string[] | undefined;
  /** True if the workers run elsewhere and have the key. */
  readonly isKeyElsewhere: boolean;
}

export interface Setting {
  readonly name: string;
  readonly value: string;
  readonly source: string;
}

/** The settings that `doctor` shows: name, variable that overrides it, how to find it in a file. */
const SHOWN: readonly [string, string | undefined, (from: ConfigFile) => string | number | undefined][] = [
  ["model", "LONGHAUL_MODEL", ({ model }) => model],
  ["sandbox.image", "SANDBOX_IMAGE", ({ sandbox }) => sandbox?.image],
  ["sandbox.network", undefined, ({ sandbox }) => sandbox?.network],
  ["sandbox.guard", undefined, ({ sandbox }) => sandbox?.guard],
  ["limits.maxSteps", undefined, ({ limits }) => limits?.maxSteps],
  ["context.strategy", undefined, ({ context }) => context?.strategy],
];

/** The result of `resolveConfig`, with the source of each value; a mistake is a failed check. */
export function describeSettings(
  flags: ConfigFlags,
  environment: Environment = process.env,
  cwd: string = process.cwd(),
): {
  check: { name: string; ok: boolean; found: string; fix?: string };
  settings: Setting[];
  sandbox?: AgentConfig["sandbox"];
  run?: RunConfig;
  choice?: ModelChoice;
} {
  const name = "configuration";
  try {
    const { path, file, ownFile, settings } = readMerged(flags, environment, cwd);
    const chosen = settings.model ?? defaultModel(environment);
    const model = chosen ?? REHEARSAL_MODEL;
    const { run } = runConfigOf(settings, model, environment);
    const sourceOf = (variable: string | undefined, pick: (from: ConfigFile) => unknown) => {
      if (variable !== undefined && setting(environment, variable) !== undefined) return "environment";
      if (pick(file) !== undefined) return "file";
      return pick(ownFile.settings) === undefined ? "default" : "own file";
    };
    const read = [path, ownFile.path].filter((file) => file !== undefined).join(", which overrides ");
    return {
      check: { name, ok: true, found: read === "" ? `no ${CONFIG_NAME}: defaults are used` : read },
      sandbox: settings.sandbox,
      run,
      choice: {
        target: run,
        hints: chosen === undefined ? keyNotes(environment, settings.providers) : undefined,
        isKeyElsewhere: isSetupOff(environment),
      },
      settings: SHOWN.map(([settingName, variable, pick]) => ({
        name: settingName,
        value: String(pick({ ...settings, model })),
        source: sourceOf(variable, pick),
      })),
    };
  } catch (error) {
    if (!(error instanceof ClientError)) throw error;
    const fix = error.fix === undefined ? {} : { fix: error.fix };
    return { check: { name, ok: false, found: error.message, ...fix }, settings: [] };
  }
}

/** The merged settings and the known models: for lists, without a session. @throws ClientError */
export function readSettings(
  flags: ConfigFlags,
  environment: Environment = process.env,
  cwd: string = process.cwd(),
): { readonly settings: AgentConfig; readonly facts: ModelFacts; readonly environment: Environment } {
  const { settings } = readMerged(flags, environment, cwd);
  return { settings, facts: modelFacts(environment), environment };
}

/** Whether others run the services and workers, so that nothing is started here. */
export function isSetupOff(environment: Environment = process.env): boolean {
  return setting(environment, "LONGHAUL_NO_SETUP") !== undefined;
}

/**
 * The acting user's name from the environment. It is shown to others but not verified.
 * @throws ClientError (usage)
 */
export function clientUser(environment: Environment = process.env): string | undefined {
  const name = setting(environment, "LONGHAUL_USER");
  return name === undefined ? undefined : checkedName(name, "LONGHAUL_USER");
}

/** Who else may use `longhaul serve`: names by their tokens. @throws ClientError (usage) */
export function serveTokens(environment: Environment = process.env): ReadonlyMap<string, string> {
  return namesByToken(setting(environment, "LONGHAUL_SERVE_TOKENS") ?? "");
}

/** Whether a build runner reads what this client prints. */
export function isInBuild(environment: Environment = process.env): boolean {
  return isInRunner(environment);
}

/** Whether errors are printed with their stack and details. */
export function isVerbose(environment: Environment = process.env): boolean {
  return setting(environment, "LONGHAUL_DEBUG") !== undefined;
}

/** Sanitizes everything that the client sends and stores: it knows the secrets in the client's environment. */
export function clientSanitizer(environment: Environment = process.env): Sanitizer {
  return createSanitizer(secretsOf(environment));
}

/** The files, and the settings in force: the environment and the flags override the files. */
function readMerged(flags: ConfigFlags, environment: Environment, cwd: string) {
  const files = readConfigFiles(flags, environment, cwd);
  const settings = overlaid(layered(files.ownFile.settings, files.file), flags, environment);
  const policy = setting(environment, "LONGHAUL_POLICY");
  // A worker that is started from here has this policy: its providers are where that says.
  const placed = policy === undefined ? {} : placedProviders(policy);
  return { ...files, settings: { ...settings, providers: { ...settings.providers, ...placed } } };
}

/** @throws ClientError (usage) that names the source of an invalid value; values from files were checked before */
function overlaid(file: ConfigFile, flags: ConfigFlags, environment: Environment): AgentConfig {
  const { maxSteps, maxCost, deadline, questions: mode, verify } = flags;
  const model = flags.model ?? setting(environment, "LONGHAUL_MODEL") ?? file.model;
  const sandbox = withSandboxFlags(file.sandbox, flags);
  const parsed = agentConfigSchema.safeParse({
    ...file,
    model,
    sandbox: {
      ...sandbox,
      image: imageNamed(
        flags.fromDevcontainer?.image ?? setting(environment, "SANDBOX_IMAGE") ?? sandbox?.image,
      ),
    },
    limits: { ...file.limits, ...definedFields({ maxSteps, maxCostUsd: maxCost, deadline }) },
    ...(verify === undefined ? {} : { verify: { ...file.verify, commands: [...verify] } }),
    ...(mode === undefined ? {} : { questions: { ...file.questions, mode } }),
  });
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  const name = issue?.path.join(".") ?? "";
  const why = issue === undefined ? "" : issueText(issue);
  throw usageError(`The value of ${name} that ${sourceOf(name, flags)} sets is not valid: ${why}`);
}

function sourceOf(name: string, { fromDevcontainer }: ConfigFlags): string {
  if (name === "sandbox.image")
    return fromDevcontainer?.image === undefined ? "SANDBOX_IMAGE" : "devcontainer.json";
  const isProjects = /^sandbox\.(setup|env|build)\b/.test(name);
  return isProjects && fromDevcontainer !== undefined ? "devcontainer.json" : "a flag or a variable";
}

/** @throws ClientError (missing) if a model that the session may use has no key or no address */
function requireCredentials(run: RunConfig, environment: Environment): void {
  for (const { model, provider } of [
    run,
    ...(run.summariser ? [run.summariser] : []),
    ...(run.fallback ?? []),
  ]) {
    // We start the rehearsal ourselves, so its address does not matter.
    if (provider.name === "rehearsal") continue;
    const names = missingVariables(provider, environment);
    if (names.length === 0) continue;
    throw missing(
      `${model} needs a key, and ${names.join(" and ")} ${names.length === 1 ? "is" : "are"} not set.`,
      provider.name === "openai"
        ? `Set OPENAI_API_KEY (and OPENAI_BASE_URL for a compatible server), or name no model: then ${REHEARSAL_MODEL} is used.`
        : `Set ${names.join(" and ")}, or name no model: then ${REHEARSAL_MODEL} is used.`,
    );
  }
}

/** @throws ClientError (usage) if LONGHAUL_CATALOGUE is not a catalogue */
function modelFacts(environment: Environment): ModelFacts {
  try {
    return currentModelFacts(setting(environment, "LONGHAUL_CATALOGUE"));
  } catch (error) {
    throw usageError((error as Error).message);
  }
}

/** @throws ClientError (usage) for a model with an unknown provider, with the lines to add */
function runConfigOf(
  settings: AgentConfig,
  name: string,
  environment: Environment,
  served?: ModelFacts["served"],
): Extract<RunResolution, { ok: true }> {
  const resolution = resolveRun(settings, name, environment, { ...modelFacts(environment), served });
  if (!resolution.ok) throw usageError(resolution.message);
  return resolution;
}

/** Total size in bytes: the skills are sent each time a worker opens the sandbox. Chosen: some hundred skills. */
const MAX_SKILL_BYTES = 256 * 1024;
/** Enough for SKILL.md, its references and its scripts. */
const MAX_SKILL_DEPTH = 4;
const SKILL_FILE = /^(?!\.)[\w.-]{1,100}$/;

/** The person's own skills are read when a session starts, and stored with it. @throws ClientError (usage) if a folder cannot be read, or the skills are too large */
function withSharedSkills<T extends SessionSkills | undefined>(skills: T, cwd: string): T | SessionSkills {
  if (skills === undefined || skills.enabled === false || (skills.folders ?? []).length === 0) return skills;
  const texts = new Map<string, string>();
  for (const folder of skills.folders ?? []) {
    try {
      readSkills(resolve(cwd, folder), "", 0, texts);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === undefined) throw error;
      throw unreadable(`skills.folders: ${folder}`, error);
    }
  }
  const size = [...texts.values()].reduce((sum, text) => sum + Buffer.byteLength(text), 0);
  if (size > MAX_SKILL_BYTES)
    throw usageError(
      `skills.folders: the skills take ${bytes(size)}; at most ${bytes(MAX_SKILL_BYTES)} can be included.`,
      "Keep large files in the workspace, or in the sandbox's image.",
    );
  const shared = [...texts].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([path, text]) => ({ path, text }));
  return { ...skills, shared };
}

/** Reads plain text files only. If several folders contain the same path, the first one wins. */
function readSkills(root: string, below: string, depth: number, texts: Map<string, string>): void {
  for (const entry of readdirSync(join(root, below), { withFileTypes: true })) {
    const path = below === "" ? entry.name : `${below}/${entry.name}`;
    if (!SKILL_FILE.test(entry.name)) continue;
    if (entry.isDirectory() && depth < MAX_SKILL_DEPTH) readSkills(root, path, depth + 1, texts);
    if (!entry.isFile() || depth === 0 || texts.has(path)) continue;
    const text = readBoundedText(join(root, path));
    if (!text.includes("\0")) texts.set(path, text);
  }
}
