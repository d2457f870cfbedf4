/** What a workspace's devcontainer.json says about its sandbox, for a person who asks for it by `--devcontainer`. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { usageError } from "../console/errors.ts";

/** Where it may lie, in this order. Source: containers.dev, the specification. */
const PLACES = [".devcontainer/devcontainer.json", ".devcontainer.json"];

const command = z.union([z.string(), z.array(z.string())]);
const commands = z.union([command, z.record(z.string(), command)]);
const variables = z.record(z.string(), z.union([z.string(), z.null()]));

const devcontainerSchema = z.looseObject({
  image: z.string().min(1).optional(),
  build: z.looseObject({ dockerfile: z.string().optional(), context: z.string().optional() }).optional(),
  dockerFile: z.string().optional(),
  dockerComposeFile: z.unknown().optional(),
  onCreateCommand: commands.optional(),
  updateContentCommand: commands.optional(),
  postCreateCommand: commands.optional(),
  containerEnv: variables.optional(),
  remoteEnv: variables.optional(),
  forwardPorts: z.array(z.union([z.number(), z.string()])).optional(),
});
type Given = z.infer<typeof devcontainerSchema>;

/** Keys that say what a sandbox never gives, or has otherwise. Editors' own are left out in silence. */
const LEFT_OUT = [
  "features",
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
  readonly setup: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** For people, a line each. */
  readonly notes: readonly string[];
}

/** @throws ClientError (usage) where there is none, it cannot be read, or it wants an image that is to be built */
export function readDevcontainer(workspace: string): Devcontainer {
  for (const place of PLACES) {
    const path = join(workspace, place);
    let text: string;
    try {
      text = readFileSync(path, "utf8");
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code === "ENOENT" || code === "ENOTDIR") continue;
      throw usageError(`${path} cannot be read (${code}).`);
    }
    return devcontainerOf(text, path);
  }
  throw usageError(`--devcontainer: ${workspace} has no ${PLACES.join(" and no ")}.`);
}

/** Pure. @param path for messages @throws ClientError (usage) */
export function devcontainerOf(text: string, path: string): Devcontainer {
  const given = parsed(text, path);
  const { build, dockerFile, dockerComposeFile } = given;
  if (dockerComposeFile !== undefined)
    throw usageError(`${path}: dockerComposeFile is not supported: a session has one container.`, NAME_IMAGE);
  const dockerfile = build?.dockerfile ?? dockerFile;
  if (dockerfile !== undefined && given.image === undefined)
    throw usageError(
      `${path} has its image built from ${dockerfile}, which we do not do.`,
      `Build it (docker build -f .devcontainer/${dockerfile} -t NAME .devcontainer/${build?.context ?? "."}) and name it: SANDBOX_IMAGE=NAME, without --devcontainer, or "image" in ${path}.`,
    );
  const { env, notes } = environmentOf(given);
  const left = LEFT_OUT.filter((key) => given[key] !== undefined);
  const ports = given.forwardPorts ?? [];
  return {
    image: given.image,
    setup: [given.onCreateCommand, given.updateContentCommand, given.postCreateCommand].flatMap(commandsOf),
    env,
    notes: [
      ...(left.length === 0
        ? []
        : [`${path}: left out, as a sandbox has no such thing: ${left.join(", ")}.`]),
      ...notes.map((note) => `${path}: ${note}`),
      ...ports.map((port) => `The project listens on port ${port}: longhaul forward ID ${portOf(port)}`),
    ],
  };
}

const NAME_IMAGE =
  "Name an image in devcontainer.json, or set sandbox.image and sandbox.setup in a file of your own.";

function parsed(text: string, path: string): Given {
  let value: unknown;
  try {
    value = JSON.parse(plainJson(text));
  } catch (error) {
    throw usageError(`${path} is no JSON with comments: ${(error as Error).message}`);
  }
  const result = devcontainerSchema.safeParse(value);
  if (result.success) return result.data;
  const [issue] = result.error.issues;
  throw usageError(`${path}: ${issue?.path.join(".") ?? ""}: ${issue?.message ?? "not as expected"}.`);
}

/** Without comments and commas before a closing bracket; strings stay as they are. */
const plainJson = (text: string): string =>
  text
    .replace(
      /("(?:\\.|[^"\\])*")|\/\/[^\n]*|\/\*[^]*?\*\//g,
      (_, string: string | undefined) => string ?? " ",
    )
    .replace(/("(?:\\.|[^"\\])*")|,(?=\s*[}\]])/g, (_, string: string | undefined) => string ?? "");

/** Those of an object run beside each other elsewhere, here one after the other. */
function commandsOf(given: z.infer<typeof commands> | undefined): string[] {
  if (given === undefined) return [];
  if (typeof given === "string") return given.trim() === "" ? [] : [replaced(given)];
  // Without a shell.
  if (Array.isArray(given))
    return given.length === 0 ? [] : [given.map((word) => quoted(replaced(word))).join(" ")];
  return Object.values(given).flatMap(commandsOf);
}

const quoted = (word: string): string =>
  /^[\w./:=@%+,-]+$/.test(word) ? word : `'${word.replaceAll("'", String.raw`'\''`)}'`;

/** Of the specification's variables, those that mean something in a sandbox. */
const replaced = (text: string): string =>
  text
    .replaceAll(/\$\{(container|local)WorkspaceFolder\}/g, WORKSPACE)
    .replaceAll(/\$\{(container|local)WorkspaceFolderBasename\}/g, "workspace");

function environmentOf({ containerEnv, remoteEnv }: Given) {
  const env: Record<string, string> = {};
  const notes: string[] = [];
  for (const [name, value] of Object.entries({ ...containerEnv, ...remoteEnv })) {
    if (value === null) continue;
    const text = replaced(value);
    // A variable of the person's machine is no business of a sandbox; one of the container is not known here.
    if (/\$\{[^}]*\}/.test(text))
      notes.push(`${name} is left out: ${text} cannot be told here. Set it in sandbox.env.`);
    else if (!/^(?!LONGHAUL_)[A-Za-z_]\w*$/.test(name))
      notes.push(`${name} is left out: no name of a variable.`);
    else env[name] = text;
  }
  return { env, notes };
}

const portOf = (port: number | string): string => String(port).split(":").at(-1) ?? "";
