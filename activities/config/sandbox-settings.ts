/** The sandbox's settings: its image, its resources and its network. */
import { z } from "zod";
import { buildSettingsSchema } from "./build-settings.ts";
import { DEFAULT_IMAGE } from "./default-image.ts";
import { domainProblem } from "./egress-domains.ts";
import { isPrefix } from "./ip-prefix.ts";
import { setupSettingsSchema } from "./setup-settings.ts";
import { megabytes, sizeSchema } from "./sizes.ts";

export const NETWORKS = ["bridge", "none", "listed"] as const;

const domainSchema = z.string().superRefine((text, context) => {
  const message = domainProblem(text);
  if (message !== undefined) context.addIssue({ code: "custom", message });
});

const address = z.url({ protocol: /^https?$/, error: "an address such as https://npm.example.com/" });
const listOf = <T extends z.ZodType<string>>(item: T) =>
  z.union([item, z.array(item)]).transform((given) => (typeof given === "string" ? [given] : given));
/** By ecosystem, the main registry first; for `go` also the GOPROXY keywords `direct` and `off`. */
const registriesSchema = z.strictObject({
  npm: listOf(address).optional(),
  pip: listOf(address).optional(),
  cargo: listOf(address).optional(),
  go: listOf(z.union([address, z.enum(["direct", "off"])])).optional(),
  maven: listOf(address).optional(),
});
export type Registries = z.infer<typeof registriesSchema>;

/** Names that the shell accepts; the supervisor's own are reserved. */
const variables = z.record(
  z.string().regex(/^(?!LONGHAUL_)[A-Za-z_][A-Za-z0-9_]*$/, "the name of a variable"),
  z.string(),
);

/** Host and port, path, tag and digest; or an id. Source: the grammar of the distribution project's `reference` package. */
const IMAGE_NAME =
  /^([A-Za-z0-9][A-Za-z0-9.-]*(:\d+)?\/)?[a-z0-9]+([._-]+[a-z0-9]+)*(\/[a-z0-9]+([._-]+[a-z0-9]+)*)*(:\w[\w.-]{0,127})?(@sha256:[0-9a-f]{64})?$/;
export const imageSchema = z
  .string()
  .max(500)
  .regex(IMAGE_NAME, "the name of an image, such as node:24 or registry.example.com/tools/rust:1.90");

/** Source: the Docker engine, which refuses smaller values. */
const MIN_CPUS = 0.01;
/** Source: the kernel, PID_MAX_LIMIT. */
const MAX_PIDS = 4_194_304;

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
  /** Source: survey of reliability, S6 (256–512). */
  pids: z.number().int().min(16).max(MAX_PIDS).default(512),
  /** Workspace, home and everything else that tools can write to, combined. Source: ours, ten times the largest checkpoint. */
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
  /** Commands that prepare a project in a new sandbox. */
  setup: setupSettingsSchema.prefault([]),
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
