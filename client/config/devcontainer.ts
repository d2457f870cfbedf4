/** The sandbox that a person asks for: its flags, and a workspace's devcontainer.json, which `--devcontainer` requests. */
import { join, posix } from "node:path";
import { z } from "zod";
import { readBoundedText } from "../console/read-bounded-text.ts";
import {
  buildSettingsSchema,
  type ImageBuild,
  type NETWORKS,
  setupSettingsSchema,
} from "../../activities/config/sandbox-settings.ts";
import { issueTexts } from "../../activities/config/issue-text.ts";
import { usageError, unreadable } from "../console/errors.ts";
import { present, definedFields } from "../console/format.ts";
import { closedAddress, domainProblem } from "../../activities/config/egress-domains.ts";
import { type ComposedServices, readCompose } from "./compose.ts";
import type { ConfigFile } from "./config-file.ts";

/** Possible paths, in order of precedence. Source: containers.dev, the specification. */
export const PLACES = [".devcontainer/devcontainer.json", ".devcontainer.json"];

const command = z.union([z.string(), z.array(z.string())]);
const commands = z.union([command, z.record(z.string(), command)]);
const variables = z.record(z.string(), z.union([z.string(), z.null()]));

const devcontainerSchema = z.looseObject({
  image: z.string().min(1).optional(),
  build: z
    .looseObject({
      dockerfile: z.string().optional(),
      context: z.string().optional(),
      args: z.record(z.string(), z.string()).optional(),
      target: z.string().optional(),
    })
    .optional(),
  // The name in older files.
  dockerFile: z.string().optional(),
  context: z.string().optional(),
  dockerComposeFile: command.optional(),
  service: z.string().optional(),
  runServices: z.array(z.string()).optional(),
  onCreateCommand: commands.optional(),
  updateContentCommand: commands.optional(),
  postCreateCommand: commands.optional(),
  containerEnv: variables.optional(),
  remoteEnv: variables.optional(),
  forwardPorts: z.array(z.union([z.number(), z.string()])).optional(),
});
type DevcontainerFile = z.infer<typeof devcontainerSchema>;

/** Keys for features that a sandbox does not have or sets up differently. Editors' own keys are ignored silently. */
const LEFT_OUT = [
  "mounts",
  "runArgs",
  "privileged",
  "capAdd",
  "securityOpt",
  "remoteUser",
  "containerUser",
  "initializeCommand",
  "postStartCommand",
  "postAttachCommand",
];
const WORKSPACE = "/workspace";

export interface Devcontainer {
  readonly image: string | undefined;
  /** The Dockerfile to build, if the file names no image. */
  readonly build: ImageBuild | undefined;
  readonly setup: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** Those of its compose file, without the one that is the sandbox. */
  readonly services?: ComposedServices["services"] | undefined;
  /** For people, one per line. */
  readonly notes: readonly string[];
}

/** @throws ClientError (usage) if there is none, it cannot be read, or it requires what a sandbox cannot have */
export function readDevcontainer(workspace: string): Devcontainer {
  for (const location of PLACES) {
    const path = join(workspace, location);
    let text: string;
    try {
      text = readBoundedText(path);
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code === "ENOENT" || code === "ENOTDIR") continue;
      throw unreadable(path, error);
    }
    const folder = posix.dirname(location);
    return parseDevcontainer(text, path, {
      folder,
      readComposed: (file, named) =>
        readCompose({ path: join(workspace, folder, file), workspace, ...named }),
    });
  }
  throw usageError(`--devcontainer: ${workspace} has no ${PLACES.join(" and no ")}.`);
}

interface FilePlace {
  /** The folder of the file in the workspace; default `.devcontainer`. */
  readonly folder?: string;
  /** Reads a compose file beside it; absent if there are no files to read. */
  readonly readComposed?: (
    file: string,
    named: { readonly sandbox: string; readonly only: readonly string[] | undefined },
  ) => ComposedServices;
}

/** @param path for messages @throws ClientError (usage) */
export function parseDevcontainer(
  text: string,
  path: string,
  { folder = ".devcontainer", readComposed }: FilePlace = {},
): Devcontainer {
  const named = parsed(text, path);
  const composed = composedBy(named, path, readComposed);
  const file: DevcontainerFile = { ...named, image: named.image ?? composed?.sandbox?.image };
  const { env, notes } = environmentOf(file);
  const own = composed?.sandbox?.build;
  const ownBuild = own && { ...file, build: { ...own }, dockerFile: undefined };
  const composeFolder = posix.join(folder, posix.dirname(String(named.dockerComposeFile ?? "")));
  const { build, notes: buildNotes } =
    file.image === undefined ? buildOf(ownBuild ?? file, path, own ? composeFolder : folder) : NO_BUILD;
  const ignoredKeys = LEFT_OUT.filter((key) => file[key] !== undefined);
  const ports = file.forwardPorts ?? [];
  return {
    image: file.image,
    build,
    setup: [file.onCreateCommand, file.updateContentCommand, file.postCreateCommand].flatMap(commandsOf),
    env: { ...composed?.sandbox?.env, ...env },
    services: composed?.services,
    notes: present(
      ...(composed?.notes ?? []),
      ignoredKeys.length > 0 &&
        `${path}: left out, because a sandbox has no such setting: ${ignoredKeys.join(", ")}.`,
      file["features"] !== undefined && `${path}: ${FEATURES}`,
      ...[...buildNotes, ...notes].map((note) => `${path}: ${note}`),
      ...ports.map((port) => `The project listens on port ${port}: longhaul forward ID ${portOf(port)}`),
    ),
  };
}

/** The compose file's services: one is the sandbox, the others start beside it. */
function composedBy(
  { dockerComposeFile, service, runServices }: DevcontainerFile,
  path: string,
  readComposed: FilePlace["readComposed"],
): ComposedServices | undefined {
  if (dockerComposeFile === undefined) return undefined;
  const [file, ...more] = [dockerComposeFile].flat();
  if (file === undefined || more.length > 0)
    throw usageError(
      `${path}: dockerComposeFile names ${more.length + (file === undefined ? 0 : 1)} files, and one is read: they are not merged here.`,
      "Write what docker compose config prints into one file, and name that.",
    );
  if (service === undefined)
    throw usageError(`${path}: dockerComposeFile without service: it says which of them is the sandbox.`);
  if (readComposed === undefined)
    throw usageError(
      `${path}: the compose file that it names is not read from a remote repository.`,
      NAME_IMAGE,
    );
  return readComposed(file, { sandbox: service, only: runServices });
}

const NAME_IMAGE =
  "Name an image in devcontainer.json, or set sandbox.image in a file of your own, and start the services with --services FILE.";

const FEATURES =
  "features are left out: their scripts run as root. Install what they provide in the Dockerfile, or in onCreateCommand without root.";

const NO_BUILD = { build: undefined, notes: [] };

/** Resolves the build's paths, which are relative to the file's folder. */
function buildOf(file: DevcontainerFile, path: string, folder: string) {
  const { build = {}, dockerFile } = file;
  const dockerfile = build.dockerfile ?? dockerFile;
  if (dockerfile === undefined) return NO_BUILD;
  const args: Record<string, string> = {};
  const notes = build["options"] === undefined ? [] : ["build.options is left out."];
  for (const [name, value] of Object.entries(build.args ?? {})) {
    const text = replaced(value);
    if (/\$\{[^}]*\}/.test(text))
      notes.push(
        `build.args.${name} is left out: the value of ${text} is not known here. Set sandbox.build in a file of your own.`,
      );
    else args[name] = text;
  }
  const result = buildSettingsSchema.safeParse({
    dockerfile: posix.join(folder, dockerfile),
    context: posix.join(folder, build.context ?? file.context ?? "."),
    args,
    target: build.target,
  });
  if (result.success) return { build: result.data, notes };
  throw usageError(
    `${path}: build.${issueTexts(result.error, buildSettingsSchema)[0]}.`,
    "Dockerfile and context must be in the project.",
  );
}

function parsed(text: string, path: string): DevcontainerFile {
  let value: unknown;
  try {
    value = JSON.parse(plainJson(text));
  } catch (error) {
    throw usageError(`${path} is not JSON with comments: ${(error as Error).message}`);
  }
  const result = devcontainerSchema.safeParse(value);
  if (result.success) return result.data;
  throw usageError(`${path}: ${issueTexts(result.error, devcontainerSchema)[0]}.`);
}

/** Removes comments, and commas before a closing bracket; strings are unchanged. */
const plainJson = (text: string): string =>
  text
    .replace(
      /("(?:\\.|[^"\\])*")|\/\/[^\n]*|\/\*[^]*?\*\//g,
      (_, string: string | undefined) => string ?? " ",
    )
    .replace(/("(?:\\.|[^"\\])*")|,(?=\s*[}\]])/g, (_, string: string | undefined) => string ?? "");

/** The specification runs the commands of an object in parallel; here they run one after the other. */
function commandsOf(command: z.infer<typeof commands> | undefined): string[] {
  if (command === undefined) return [];
  if (typeof command === "string") return command.trim() === "" ? [] : [replaced(command)];
  // An array is run without a shell, so each word is quoted.
  if (Array.isArray(command))
    return command.length === 0 ? [] : [command.map((word) => quoted(replaced(word))).join(" ")];
  return Object.values(command).flatMap(commandsOf);
}

const quoted = (word: string): string =>
  /^[\w./:=@%+,-]+$/.test(word) ? word : `'${word.replaceAll("'", String.raw`'\''`)}'`;

/** The specification's variables that make sense in a sandbox. */
const replaced = (text: string): string =>
  text
    .replaceAll(/\$\{(container|local)WorkspaceFolder\}/g, WORKSPACE)
    .replaceAll(/\$\{(container|local)WorkspaceFolderBasename\}/g, "workspace");

function environmentOf({ containerEnv, remoteEnv }: DevcontainerFile) {
  const env: Record<string, string> = {};
  const notes: string[] = [];
  for (const [name, value] of Object.entries({ ...containerEnv, ...remoteEnv })) {
    if (value === null) continue;
    const text = replaced(value);
    // A sandbox gets no variables of the person's machine, and the container's variables are unknown here.
    if (/\$\{[^}]*\}/.test(text))
      notes.push(`${name} is left out: the value of ${text} is not known here. Set it in sandbox.env.`);
    else if (!/^(?!LONGHAUL_)[A-Za-z_]\w*$/.test(name))
      notes.push(`${name} is left out: not a valid variable name.`);
    else env[name] = text;
  }
  return { env, notes };
}

const portOf = (port: number | string): string => String(port).split(":").at(-1) ?? "";

export interface SandboxFlags {
  readonly network?: (typeof NETWORKS)[number] | undefined;
  /** Domains that the sandbox may reach, in addition to those in the files. */
  readonly allowDomain?: readonly string[] | undefined;
  /** Keys of the worker's, in addition to those in the files. */
  readonly key?: readonly string[] | undefined;
  /** False: the session waits for no base. */
  readonly warm?: boolean | undefined;
  /** The workspace's devcontainer.json, on request. */
  readonly fromDevcontainer?: Devcontainer | undefined;
  /** The services of a compose file, on request. */
  readonly fromCompose?: Pick<ComposedServices, "services"> | undefined;
}

/** The person's own settings override the devcontainer's, except for its image, which the flag requested. */
function withContainer(
  file: ConfigFile["sandbox"],
  container: Devcontainer | undefined,
): ConfigFile["sandbox"] {
  if (container === undefined) return file;
  const { image, build, setup, env } = container;
  const ownSetup = setupSettingsSchema.parse(file?.setup ?? []);
  return {
    ...file,
    ...definedFields({ image, build }),
    env: { ...env, ...file?.env },
    setup: { ...ownSetup, commands: [...setup, ...ownSetup.commands] },
  };
}

/** The person's own settings of a service override the file's. */
const servicesWith = (file: ConfigFile["sandbox"], { services }: Pick<ComposedServices, "services">) =>
  ({ ...services, ...file?.services }) as NonNullable<ConfigFile["sandbox"]>["services"];

/** @throws ClientError (usage) for a domain that cannot be allowed, or would have no effect */
export function withSandboxFlags(
  file: ConfigFile["sandbox"],
  { network, allowDomain = [], key = [], warm, fromDevcontainer, fromCompose }: SandboxFlags,
): ConfigFile["sandbox"] {
  for (const domain of allowDomain) {
    const problem = domainProblem(domain) ?? closedAddress(domain, file?.allow ?? []);
    if (problem !== undefined) throw usageError(`--allow-domain ${domain}: ${problem}.`);
  }
  const composed = fromCompose?.services ?? fromDevcontainer?.services;
  const sandbox = {
    ...withContainer(file, fromDevcontainer),
    ...(composed === undefined ? {} : { services: servicesWith(file, { services: composed }) }),
    ...(network === undefined ? {} : { network }),
    ...(warm === false && file?.layers !== "copy" ? { layers: "made" as const } : {}),
    ...(key.length === 0 ? {} : { keys: [...new Set([...(file?.keys ?? []), ...key])] }),
  };
  if (allowDomain.length === 0) return sandbox;
  if (sandbox.network !== "listed") {
    throw usageError(
      `--allow-domain has no effect with sandbox.network: ${sandbox.network ?? "bridge"}.`,
      "Add --network listed: then the sandbox reaches only the listed names.",
    );
  }
  return { ...sandbox, domains: [...(file?.domains ?? []), ...allowDomain] };
}
