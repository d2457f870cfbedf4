/**
 * What a session is to run by: file, environment and flags, in that order of increasing weight. The client's only reader
 * of the environment. Nothing is ever read from a workspace.
 */
import { existsSync, readFileSync } from "node:fs";
import { dirname, isAbsolute, join, relative, resolve } from "node:path";
import { agentConfigSchema, type AgentConfig, type RunConfig } from "../activities/agent-config.ts";
import { resolveRun } from "../activities/model/models.ts";
import { parseConfigFile, type ConfigFile } from "./config-file.ts";
import { ClientError, missing, usageError } from "./errors.ts";

/** Plays a written script when there is no model to be had. */
export const REHEARSAL_MODEL = "rehearsal/flashcards";
/** What an API key without a word about the model gets. */
const DEFAULT_MODEL = "openai/gpt-5";
const CONFIG_NAME = "longhaul.yaml";

export type Environment = Readonly<Record<string, string | undefined>>;

export interface ConfigFlags {
  readonly config?: string | undefined;
  readonly model?: string | undefined;
  readonly maxSteps?: number | undefined;
  /** False where services and workers are elsewhere. */
  readonly setup?: boolean | undefined;
  /** The folder that is put in: no configuration is read from it. */
  readonly workspace?: string | undefined;
}

export interface ResolvedConfig {
  readonly run: RunConfig;
  /** True where no key was found and nobody named a model. */
  readonly rehearsal: boolean;
  /** The file that was read. */
  readonly file: string | undefined;
  /** What the person should know, a line each. */
  readonly notes: readonly string[];
}

/**
 * Resolves the configuration of a new session.
 * @throws ClientError: usage for what is wrong or unknown, missing for a credential that is not there
 */
export function resolveConfig(
  flags: ConfigFlags,
  environment: Environment = process.env,
  cwd: string = process.cwd(),
): ResolvedConfig {
  const { path, notes } = findConfigFile(flags, environment, cwd);
  const file: ConfigFile = path === undefined ? {} : parseConfigFile(shown(path, cwd), readConfig(path));
  const settings = overlaid(file, flags, environment);
  const chosen = settings.model ?? (hasCredentials(environment) ? DEFAULT_MODEL : undefined);
  // First what is wrong with the order, then what it lacks.
  const run = runConfigOf(settings, chosen ?? REHEARSAL_MODEL, environment);
  // Where the workers are elsewhere, so are the keys.
  if (flags.setup !== false && !isSetupOff(environment)) requireCredentials(run.model, environment);
  return {
    run,
    rehearsal: chosen === undefined,
    file: path,
    notes,
  };
}

export interface Setting {
  readonly name: string;
  readonly value: string;
  readonly source: string;
}

/** What `resolveConfig` comes to, with where each value is from; a mistake is a check that failed. */
export function describeSettings(
  flags: ConfigFlags,
  environment: Environment = process.env,
  cwd: string = process.cwd(),
): { check: { name: string; ok: boolean; found: string; mend?: string }; settings: Setting[] } {
  const name = "configuration";
  try {
    const { path } = findConfigFile(flags, environment, cwd);
    const file: ConfigFile = path === undefined ? {} : parseConfigFile(shown(path, cwd), readConfig(path));
    const settings = overlaid(file, flags, environment);
    const model = setting(environment, "LONGHAUL_MODEL");
    const image = setting(environment, "SANDBOX_IMAGE");
    const sourceOf = (fromEnvironment: unknown, fromFile: unknown) =>
      fromEnvironment !== undefined ? "environment" : fromFile !== undefined ? "file" : "default";
    const chosen = settings.model ?? (hasCredentials(environment) ? DEFAULT_MODEL : REHEARSAL_MODEL);
    runConfigOf(settings, chosen, environment);
    return {
      check: { name, ok: true, found: path ?? `no ${CONFIG_NAME}: defaults` },
      settings: [
        { name: "model", value: chosen, source: sourceOf(model, file.model) },
        {
          name: "sandbox.image",
          value: settings.sandbox.image,
          source: sourceOf(image, file.sandbox?.image),
        },
        {
          name: "sandbox.network",
          value: settings.sandbox.network,
          source: sourceOf(undefined, file.sandbox?.network),
        },
        {
          name: "limits.maxSteps",
          value: String(settings.limits.maxSteps),
          source: sourceOf(undefined, file.limits?.maxSteps),
        },
        {
          name: "context.strategy",
          value: settings.context.strategy,
          source: sourceOf(undefined, file.context?.strategy),
        },
      ],
    };
  } catch (error) {
    if (!(error instanceof ClientError)) throw error;
    const mend = error.mend === undefined ? {} : { mend: error.mend };
    return { check: { name, ok: false, found: error.message, ...mend }, settings: [] };
  }
}

/** Whether services and workers are somebody else's, so that nothing is brought up here. */
export function isSetupOff(environment: Environment = process.env): boolean {
  return setting(environment, "LONGHAUL_NO_SETUP") !== undefined;
}

/** Whether errors are shown with all they know. */
export function isVerbose(environment: Environment = process.env): boolean {
  return setting(environment, "LONGHAUL_DEBUG") !== undefined;
}

function setting(environment: Environment, name: string): string | undefined {
  const value = environment[name]?.trim();
  return value === undefined || value === "" ? undefined : value;
}

const hasCredentials = (environment: Environment) =>
  setting(environment, "OPENAI_API_KEY") !== undefined ||
  setting(environment, "OPENAI_BASE_URL") !== undefined;

function findConfigFile(
  flags: ConfigFlags,
  environment: Environment,
  cwd: string,
): { path: string | undefined; notes: string[] } {
  const named = flags.config ?? setting(environment, "LONGHAUL_CONFIG");
  if (named !== undefined) {
    const path = resolve(cwd, named);
    if (!existsSync(path)) throw usageError(`There is no configuration file ${named}.`);
    return { path, notes: [] };
  }
  const path = join(cwd, CONFIG_NAME);
  if (!existsSync(path)) return { path: undefined, notes: [] };
  if (flags.workspace !== undefined && isInside(dirname(path), resolve(cwd, flags.workspace))) {
    return {
      path: undefined,
      notes: [
        `${CONFIG_NAME} lies in the workspace, so it is not read; --config ${CONFIG_NAME} uses it all the same.`,
      ],
    };
  }
  return { path, notes: [] };
}

function isInside(folder: string, outer: string): boolean {
  const way = relative(outer, folder);
  return way === "" || (!way.startsWith("..") && !isAbsolute(way));
}

function readConfig(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    throw usageError(
      `The configuration file ${path} cannot be read (${(error as NodeJS.ErrnoException).code}).`,
    );
  }
}

const shown = (path: string, cwd: string) => {
  const way = relative(cwd, path);
  return way === "" || way.startsWith("..") ? path : way;
};

function overlaid(file: ConfigFile, flags: ConfigFlags, environment: Environment): AgentConfig {
  const model = flags.model ?? setting(environment, "LONGHAUL_MODEL") ?? file.model;
  const image = setting(environment, "SANDBOX_IMAGE") ?? file.sandbox?.image;
  return agentConfigSchema.parse({
    ...file,
    ...(model === undefined ? {} : { model }),
    ...(image === undefined ? {} : { sandbox: { ...file.sandbox, image } }),
    ...(flags.maxSteps === undefined ? {} : { limits: { ...file.limits, maxSteps: flags.maxSteps } }),
  });
}

/** @throws ClientError (missing) when a model of OpenAI is to be asked without a key */
function requireCredentials(model: string, environment: Environment): void {
  if (model.startsWith("rehearsal/") || hasCredentials(environment)) return;
  throw missing(
    `${model} needs a key, and OPENAI_API_KEY is not set.`,
    `Set OPENAI_API_KEY (and OPENAI_BASE_URL for a compatible server), or leave the model out: then ${REHEARSAL_MODEL} plays.`,
  );
}

/** @throws ClientError (usage) for a model that nobody knows, with the lines to add */
function runConfigOf(settings: AgentConfig, name: string, environment: Environment): RunConfig {
  const resolution = resolveRun(settings, name, environment);
  if (!resolution.ok) throw usageError(resolution.message);
  return resolution.run;
}
