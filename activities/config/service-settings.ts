/** The services of a session's sandbox, such as a database: containers in its network namespace, which live as long as it does. */
import { z } from "zod";
import { imageSchema, megabytes, sizeSchema, variables, pathInWorkspace } from "./setting-values.ts";

/** Chosen: more than the compose files of projects have, and few enough for one host. */
const MAX_SERVICES = 8;
const MAX_FILES = 20;
const MAX_PORTS = 20;
const MAX_FOLDERS = 10;
const MAX_WORDS = 200;
const MAX_WORD_CHARS = 10_000;
/** Source: docs/sandbox.md, which says why: a service has no more than the sandbox beside it. */
const USUAL_MEMORY = "512m";
const USUAL_CPUS = 1;
/** Source: the Docker engine, which refuses less memory and fewer processors. */
const MIN_MEMORY_MB = 6;
const MIN_CPUS = 0.01;
const USUAL_INTERVAL_MS = 2_000;
const USUAL_TIMEOUT_MS = 60_000;
const MAX_TIMEOUT_MS = 3_600_000;

const UNIT_MS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 };

/** `90s`, `1m30s` or `500ms` in ms; undefined for any other text. */
export function parseDuration(text: string): number | undefined {
  if (!/^(\d{1,9}(\.\d{1,3})?(ms|s|m|h))+$/.test(text)) return undefined;
  const parts = text.matchAll(/([\d.]+)(ms|s|m|h)/g);
  return Math.round(
    [...parts].reduce((sum, [, count, unit = ""]) => sum + Number(count) * (UNIT_MS[unit] ?? 0), 0),
  );
}

/** A time as compose files write it, or in ms. */
const duration = z.union([z.number(), z.string()]).transform((written, context) => {
  const ms = typeof written === "number" ? written : parseDuration(written);
  if (ms !== undefined && Number.isInteger(ms) && ms > 0 && ms <= MAX_TIMEOUT_MS) return ms;
  context.addIssue({ code: "custom", message: "a time of at most 1h, such as 2s or 1m30s" });
  return z.NEVER;
});

/** Also a host name in the sandbox. Compose allows a dot too, with which a name could stand for another host. */
const serviceName = z
  .string()
  .regex(/^(?!(localhost|box)$)[a-z0-9][a-z0-9_-]{0,62}$/i, "a name of letters, digits, _ and -, such as db");

const commandWords = z.array(z.string().max(MAX_WORD_CHARS)).max(MAX_WORDS);
const port = z.number().int().min(1).max(65_535);

/** Absolute in the service, apart from the kernel's own folders. */
const containerPath = z
  .string()
  .max(500)
  .regex(
    /^(?!\/(proc|sys|dev)(\/|$))(?!.*\/\.{1,2}(\/|$))(\/[^/\0]+)+$/,
    "an absolute path in the service such as /var/lib/data, not below /proc, /sys or /dev",
  );

const healthSchema = z.strictObject({
  /** As of Docker: `[CMD, program, argument …]`, `[CMD-SHELL, line]`, or `[NONE]`. Default: the image's own. */
  test: commandWords
    .refine(
      ([kind, ...rest]) =>
        (kind === "CMD" && rest.length > 0) ||
        (kind === "CMD-SHELL" && rest.length === 1) ||
        (kind === "NONE" && rest.length === 0),
      "[CMD, program, argument …], [CMD-SHELL, line] or [NONE]",
    )
    .optional(),
  /** Time between two tests. */
  interval: duration.default(USUAL_INTERVAL_MS),
  /** How long the service may take until it is healthy. */
  timeout: duration.default(USUAL_TIMEOUT_MS),
});

/** Who a service runs as, without a name that the engine would look up elsewhere than in the image. */
const serviceUser = z
  .union([z.string(), z.number().int().min(0)])
  .transform(String)
  .pipe(
    z
      .string()
      .regex(/^[\w.-]{1,64}(:[\w.-]{1,64})?$/, "a user of the image such as postgres, 999 or 999:999"),
  );

const serviceSchema = z.strictObject({
  image: imageSchema,
  /** Can be read by the model, as `sandbox.env`. */
  env: variables.default({}),
  /** Replaces the image's command. */
  command: commandWords.optional(),
  /** Replaces the image's entry point. */
  entrypoint: commandWords.optional(),
  /** Ports that it listens on; default: those that the image declares. */
  ports: z.array(port).max(MAX_PORTS).default([]),
  health: healthSchema.prefault({}),
  memory: sizeSchema
    .refine((size) => megabytes(size) >= MIN_MEMORY_MB, `at least ${MIN_MEMORY_MB}m`)
    .default(USUAL_MEMORY),
  cpus: z.number().min(MIN_CPUS).default(USUAL_CPUS),
  /** Files of the workspace, and where the service has a copy of each. */
  files: z
    .record(pathInWorkspace, containerPath)
    .refine((files) => Object.keys(files).length <= MAX_FILES, `at most ${MAX_FILES} files`)
    .default({}),
  /** `fresh`: empty in each new sandbox; `kept`: on a volume that stays while the session runs or waits. */
  data: z.enum(["fresh", "kept"]).default("fresh"),
  /** Where its data is; default: the folders that the image declares as volumes. */
  dataFolders: z.array(containerPath).max(MAX_FOLDERS).default([]),
  /** Folders in memory, which counts as the service's. */
  tmpfs: z.array(containerPath).max(MAX_FOLDERS).default([]),
  user: serviceUser.optional(),
  /** Services that must be started, or healthy, before it is. */
  dependsOn: z.record(serviceName, z.enum(["started", "healthy"])).default({}),
});
export type ServiceSettings = z.infer<typeof serviceSchema>;
export type ServicesSettings = Readonly<Record<string, ServiceSettings>>;

/** `sandbox.services` of the configuration. */
export const servicesSchema = z.record(serviceName, serviceSchema).superRefine((services, context) => {
  for (const { path, message } of servicesTroubles(services))
    context.addIssue({ code: "custom", path: [...path], message });
});

interface ServicesTrouble {
  readonly path: readonly string[];
  readonly message: string;
}

/** What services cannot have together. */
function servicesTroubles(services: ServicesSettings): ServicesTrouble[] {
  const names = Object.keys(services);
  const troubles: ServicesTrouble[] = [];
  if (names.length > MAX_SERVICES)
    troubles.push({
      path: [],
      message: `there are ${names.length} services, and a sandbox has at most ${MAX_SERVICES}`,
    });
  const byName = new Map<string, string>();
  for (const name of names) {
    const other = byName.get(name.toLowerCase());
    if (other !== undefined) troubles.push({ path: [name], message: `is the same host name as ${other}` });
    byName.set(name.toLowerCase(), name);
  }
  for (const { port: taken, first, second } of portCollisions(
    Object.entries(services).map(([name, { ports }]) => ({ name, ports })),
  ))
    troubles.push({
      path: [second, "ports"],
      message: `${taken} is the port of ${first} too, and all services of a sandbox share its localhost: give one of them another port`,
    });
  for (const [name, { dependsOn }] of Object.entries(services))
    for (const other of Object.keys(dependsOn))
      if (!names.includes(other) || other === name)
        troubles.push({ path: [name, "dependsOn"], message: `there is no other service ${other}` });
  if (troubles.length === 0 && startOrder(services) === undefined)
    troubles.push({ path: [], message: "services wait for each other in a circle (dependsOn)" });
  return troubles;
}

/** Ports that two services claim. */
export function portCollisions(
  claims: readonly { readonly name: string; readonly ports: readonly number[] }[],
): { readonly port: number; readonly first: string; readonly second: string }[] {
  const owners = new Map<number, string>();
  return claims.flatMap(({ name, ports }) =>
    [...new Set(ports)].flatMap((claimed) => {
      const first = owners.get(claimed);
      owners.set(claimed, first ?? name);
      return first === undefined ? [] : [{ port: claimed, first, second: name }];
    }),
  );
}

/** The names, each after those that it depends on; undefined if there is a circle. */
export function startOrder(services: ServicesSettings): string[] | undefined {
  const left = new Map(Object.entries(services));
  const startOrder: string[] = [];
  while (left.size > 0) {
    const next = [...left].filter(([, { dependsOn }]) =>
      Object.keys(dependsOn).every((other) => !left.has(other)),
    );
    if (next.length === 0) return undefined;
    for (const [name] of next) {
      startOrder.push(name);
      left.delete(name);
    }
  }
  return startOrder;
}

interface WithServices {
  readonly services?: ServicesSettings | undefined;
  readonly container?: unknown;
}

/** The services of a session's sandbox: another person's container has none. */
export const sandboxServices = ({ services = {}, container }: WithServices): ServicesSettings =>
  container === undefined ? services : {};

/** The settings of a delegate's sandbox: its services are its own, and begin empty. */
export const withFreshServices = <T extends WithServices>(sandbox: T): T =>
  sandbox.services === undefined
    ? sandbox
    : {
        ...sandbox,
        services: Object.fromEntries(
          Object.entries(sandbox.services).map(([name, service]) => [
            name,
            { ...service, data: "fresh" as const },
          ]),
        ),
      };

/** Memory in MiB and processors of a sandbox and its services together. */
export function withServicesSum(sandbox: WithServices & { readonly memory: string; readonly cpus: number }) {
  const all = Object.values(sandboxServices(sandbox));
  return {
    memoryMb: all.reduce((sum, { memory }) => sum + megabytes(memory), megabytes(sandbox.memory)),
    cpus: all.reduce((sum, { cpus }) => sum + cpus, sandbox.cpus),
  };
}

/** Longest that the services may take to become healthy, in ms; undefined without services. */
export function sumServiceTimeouts(sandbox: WithServices): number | undefined {
  const all = Object.values(sandboxServices(sandbox));
  return all.length === 0 ? undefined : all.reduce((sum, { health }) => sum + health.timeout, 0);
}

/** One line for the model; empty without services. */
export function servicesPrompt(sandbox: WithServices, isPlanning: boolean): string {
  const all = Object.entries(sandboxServices(sandbox));
  if (all.length === 0) return "";
  const entries = all.map(([name, { image, ports }]) =>
    ports.length === 0
      ? `${name} (${image}) at ${name}`
      : `${name} (${image}) at ${ports.map((at) => `${name}:${at}`).join(" and ")}`,
  );
  const when = isPlanning
    ? " They are started when the plan is approved."
    : ` \`bash_output\` with id "service:${all[0]?.[0]}" shows a log.`;
  return `Services: ${entries.join(", ")}. They share this machine's localhost.${when}`;
}
