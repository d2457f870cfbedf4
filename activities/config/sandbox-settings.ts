/** The sandbox's settings: its image or container, its set-up, its resources and its network. */
import { z } from "zod";
import { domainProblem } from "./egress-domains.ts";
import { keyNameSchema } from "./key-settings.ts";
import { isPrefix } from "./addresses.ts";
import { servicesSchema } from "./service-settings.ts";
import {
  imageSchema,
  megabytes,
  sizeSchema,
  timerMs,
  variables,
  pathInWorkspace,
  keepMs,
} from "./setting-values.ts";

/**
 * The default image of sandboxes, and of the container that sets up their firewall. Its number increases with its
 * contents, so that an image built from an older list is not mistaken for it.
 */
export const DEFAULT_IMAGE = "longhaul-sandbox:5";
/** The default image plus Go, Rust and a JDK: built only if it is named. */
export const FULL_IMAGE = `${DEFAULT_IMAGE}-full`;
/** The full image's name as a person types it, whatever its number. */
const FULL_NAME = "longhaul-sandbox:full";

/** The image that a person means by `name`; without one, the default. */
export const imageNamed = (name: string = DEFAULT_IMAGE): string => (name === FULL_NAME ? FULL_IMAGE : name);

/** Another person's container in which a session works. Never from a configuration file: a person names it. */
export const containerSchema = z.object({
  name: z
    .string()
    .max(200)
    .regex(/^[A-Za-z0-9][A-Za-z0-9_.-]*$/, "the name or id of a container"),
  /** The engine's id of the intended container, if the client could see it: another container of the same name is refused. */
  id: z.string().optional(),
  /** The folder to work in, absolute. */
  folder: z.string().regex(/^\/(?!$)[^\0]*[^\0/]$|^\/[^\0/]$/, "an absolute folder below /"),
});
export type AttachedContainer = z.infer<typeof containerSchema>;

/** The name of the working folder in the tools and their descriptions. */
export const WORKSPACE = "/workspace";

/** A text about the workspace, adapted to a session that works elsewhere. */
export const inFolder = (text: string, folder: string): string => text.replaceAll(WORKSPACE, folder);

/** Chosen: a cold installation of a large project with a build. */
const DEFAULT_TIMEOUT_MS = 1_200_000;
const MAX_COMMANDS = 50;
const MAX_COMMAND_CHARS = 10_000;

const commands = z.array(z.string().min(1).max(MAX_COMMAND_CHARS)).max(MAX_COMMANDS);

const setupSchema = z.strictObject({
  /** Run by `bash -c` in /workspace, one after the other; the first failure ends the set-up. */
  commands: commands.default([]),
  /** A failed command ends the run; with `optional` the model gets a notice and continues without it. */
  optional: z.boolean().default(false),
  /** Whether the result is kept on the host, for the person's next sessions on this project. */
  keep: z.boolean().default(true),
  /** Whose results a session takes: the person's own (default), or also those that the operator's `warm` made for the team. */
  scope: z.enum(["person", "team"]).optional(),
  /** Timeout of each command, in ms. */
  timeout: timerMs.default(DEFAULT_TIMEOUT_MS),
});

/** The two written forms: only the commands, or an object with further settings. */
export const setupSettingsSchema = z.union([
  commands.transform((commandList) => setupSchema.parse({ commands: commandList })),
  setupSchema,
]);

export type Setup = z.infer<typeof setupSchema>;

/** Another person's container is used unchanged: no image is built. */
export const buildOf = (sandbox: {
  readonly build?: ImageBuild | undefined;
  readonly container?: unknown;
}): ImageBuild | undefined => (sandbox.container === undefined ? sandbox.build : undefined);

/** Undefined if there is nothing to set up. */
export function setupOf(sandbox: {
  readonly setup?: Setup;
  readonly build?: ImageBuild | undefined;
  readonly container?: unknown;
}): Setup | undefined {
  const { setup } = sandbox;
  const build = buildOf(sandbox);
  return setup === undefined || (setup.commands.length === 0 && build === undefined) ? undefined : setup;
}

/** Longest that all commands and the image's build may take, in ms. */
export const sumSetupTimeouts = (
  { commands, timeout }: Setup,
  { build }: { readonly build?: ImageBuild | undefined },
): number => (commands.length + (build === undefined ? 0 : 1)) * timeout;

export const buildSettingsSchema = z.strictObject({
  dockerfile: pathInWorkspace,
  /** The folder that COPY and ADD read from. */
  context: pathInWorkspace.default("."),
  /** Values of the Dockerfile's ARGs. */
  args: z.record(z.string().regex(/^[A-Za-z_]\w*$/, "the name of an ARG"), z.string()).default({}),
  /** The stage to build; default: the last. */
  target: z.string().min(1).max(200).optional(),
});
export type ImageBuild = z.infer<typeof buildSettingsSchema>;

/** The build as a person would type it; shown in events. */
export const buildCommand = ({ dockerfile, context, target }: ImageBuild): string =>
  `docker build -f ${dockerfile}${target === undefined ? "" : ` --target ${target}`} ${context}`;

export const NETWORKS = ["bridge", "none", "listed"] as const;

const domainSchema = z.string().superRefine((text, context) => {
  const message = domainProblem(text);
  if (message !== undefined) context.addIssue({ code: "custom", message });
});

const address = z.url({ protocol: /^https?$/, error: "an address such as https://npm.example.com/" });
const listOf = <T extends z.ZodType<string>>(item: T) =>
  z.union([item, z.array(item)]).transform((items) => (typeof items === "string" ? [items] : items));
/** By ecosystem, the main registry first; for `go` also the GOPROXY keywords `direct` and `off`. */
const registriesSchema = z.strictObject({
  npm: listOf(address).optional(),
  pip: listOf(address).optional(),
  cargo: listOf(address).optional(),
  go: listOf(z.union([address, z.enum(["direct", "off"])])).optional(),
  maven: listOf(address).optional(),
});
export type Registries = z.infer<typeof registriesSchema>;

/** Source: the Docker engine, which refuses smaller values. */
const MIN_CPUS = 0.01;
/** Source: the kernel, PID_MAX_LIMIT. */
const MAX_PIDS = 4_194_304;

/** Chosen: more than a project's registries and services. */
const MAX_KEYS = 32;

const NO_DOCKER =
  "a sandbox has no Docker socket, so Testcontainers and docker run do not work in it: name the containers that the project needs in sandbox.services";

export const sandboxConfigSchema = z.strictObject({
  image: imageSchema.default(DEFAULT_IMAGE),
  /** Source: requirement D4 (bridge). `none` closes the network; `listed` allows only `domains`. */
  network: z.enum(NETWORKS).default("bridge"),
  /** With `listed`: host names, `*.name` for subdomains, groups. */
  domains: z.array(domainSchema).default([]),
  /** With `listed`: a person is asked about unlisted names. */
  askForDomains: z.boolean().optional(),
  /** Private addresses that a sandbox on the bridge may still reach, such as a package mirror. */
  allow: z.array(z.string().refine(isPrefix, "an IP address, or a prefix such as 10.1.0.0/16")).default([]),
  /** `required`: no sandbox on the bridge unless private addresses are blocked; `best-effort`: a warning if they are not. */
  guard: z.enum(["required", "best-effort"]).default("required"),
  /** To the engine 0 would mean no limit, and so would fractions that it rounds to 0. */
  memory: sizeSchema.refine((size) => megabytes(size) !== 0, "more than 0").default("2g"),
  cpus: z.number().min(MIN_CPUS).default(2),
  /** Source: other sandboxes allow 256 to 512 processes. */
  pids: z.number().int().min(16).max(MAX_PIDS).default(512),
  /** Workspace, home and everything else that tools can write to, combined. Chosen: ten times the largest checkpoint. */
  disk: sizeSchema.default("10g"),
  /** This much of the host's disk stays free, whatever fills the disk. */
  diskFree: sizeSchema.default("1g"),
  /** The engine's name of an OCI runtime, such as runsc. */
  runtime: z.string().min(1).optional(),
  /** Private package registries that the sandbox may reach and uses; `inherit`: those of the person's machine. */
  registries: z.union([z.enum(["inherit", "none"]), registriesSchema]).default("inherit"),
  /** A file of certificate authorities, instead of those of the person's machine. */
  caCerts: z.string().min(1).optional(),
  /** Environment variables of the sandbox's commands. */
  env: variables.default({}),
  /** Package caches shared by one person's sessions on a host, which therefore must trust each other. */
  cache: z.boolean().default(false),
  /** A Dockerfile of the workspace: it is built in a sandbox from `image`, and the session's sandbox uses the result. */
  build: buildSettingsSchema.optional(),
  /** Keys of the worker's that its programs can use and not read, by their names. */
  keys: z.array(keyNameSchema).max(MAX_KEYS).optional(),
  /** Commands that prepare a project in a new sandbox. */
  setup: setupSettingsSchema.prefault([]),
  /**
   * How long a stopped sandbox is kept after its run has ended or while it waits, in ms: what was installed is there when it goes on.
   * Chosen: a weekend; the host's disk has its own limit.
   */
  park: z.strictObject({ keep: keepMs }).prefault({ keep: "3d" }),
  /**
   * With a repository: `auto` begins on its base, which is made if the host has none; `made` only on one that is there already; `copy`
   * checks it out for the session alone.
   */
  layers: z.enum(["auto", "made", "copy"]).default("auto"),
  /** Containers beside the sandbox, in its network namespace, by their host names. */
  services: servicesSchema.optional(),
  docker: z.never({ error: NO_DOCKER }).optional(),
});

/** What the client determined for a session's sandbox at its start. */
export const inheritedSchema = z.object({
  registries: registriesSchema.optional(),
  /** PEM of private authorities. */
  certificates: z.string().optional(),
  /** Identifies the shared caches: a hash of person and machine, with `cache`. */
  cache: z
    .string()
    .regex(/^[0-9a-f]{16}$/)
    .optional(),
  /** Identifies the shared set-ups: a hash of person, machine and project. */
  setup: z
    .string()
    .regex(/^[0-9a-f]{16}$/)
    .optional(),
});
