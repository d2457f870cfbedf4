/** Services from a compose file: what a sandbox can have is read, and everything else is refused by its name before anything starts. */
import { lstatSync, realpathSync } from "node:fs";
import { basename, dirname, isAbsolute, join, posix, relative, resolve } from "node:path";
import { parse } from "yaml";
import { readBoundedText } from "../console/read-bounded-text.ts";
import { parseDuration, servicesSchema } from "../../activities/config/service-settings.ts";
import { issueTexts } from "../../activities/config/issue-text.ts";
import { reasonOf } from "../../activities/contract/errors.ts";
import { usageError, unreadable } from "../console/errors.ts";

type Group = Readonly<Record<string, unknown>>;

export interface ComposedServices {
  /** As in `sandbox.services`. */
  readonly services: Readonly<Record<string, Group>>;
  /** What is read of the service that is the sandbox itself, if one was named. */
  readonly sandbox?: ComposedSandbox | undefined;
  /** For people, one per line. */
  readonly notes: readonly string[];
}

interface ComposedSandbox {
  readonly image: string | undefined;
  /** Paths are relative to the compose file's folder; that of the Dockerfile too. */
  readonly build:
    | (Readonly<Record<"dockerfile" | "context", string>> & {
        readonly args: Readonly<Record<string, string>>;
        readonly target: string | undefined;
      })
    | undefined;
  readonly env: Readonly<Record<string, string>>;
}

interface ComposeRequest {
  /** The compose file. */
  readonly path: string;
  /** The project's folder: files of services are in it. */
  readonly workspace: string | undefined;
  readonly without?: readonly string[] | undefined;
  /** The service that is the sandbox itself. */
  readonly sandbox?: string | undefined;
  /** Names of the services that are started; default all. */
  readonly only?: readonly string[] | undefined;
}

/** Keys without a meaning for a container beside a sandbox. */
const IGNORED = [
  "container_name",
  "deploy",
  "hostname",
  "init",
  "labels",
  "logging",
  "networks",
  "platform",
  "pull_policy",
  "restart",
  "stop_grace_period",
  "stop_signal",
];
const MAX_FILE_BYTES = 1024 * 1024;
const USUAL_TIMEOUT_MS = 60_000;
/** Source: the Compose specification. */
const USUAL_INTERVAL_MS = 30_000;
const USUAL_RETRIES = 3;

/** @throws ClientError (usage) that names the service and the setting which a sandbox cannot have */
export function readCompose({
  path,
  workspace,
  without = [],
  sandbox,
  only,
}: ComposeRequest): ComposedServices {
  const file = parsedFile(path);
  const name = basename(path);
  for (const key of ["include", "secrets", "configs"])
    if (file[key] !== undefined)
      throw usageError(`${name} uses ${key}, which a sandbox cannot have. Remove it.`);
  const all = groupIn(file["services"]);
  for (const left of without)
    if (!Object.hasOwn(all, left))
      throw usageError(`--without ${left}: ${name} has no service of that name.`);
  const volumes = groupIn(file["volumes"]);
  if (sandbox !== undefined && !Object.hasOwn(all, sandbox))
    throw usageError(`${name} has no service ${sandbox}, which is to be the sandbox.`);
  const names = Object.keys(all).filter(
    (service) =>
      service !== sandbox && !without.includes(service) && (only === undefined || only.includes(service)),
  );
  const reader = { name, folder: dirname(resolve(path)), workspace, volumes, names };
  const notes: string[] = [];
  const services = Object.fromEntries(
    names.map((service) => [service, serviceIn(reader, service, groupIn(all[service]), notes)]),
  );
  const own = sandbox === undefined ? undefined : sandboxIn(reader, sandbox, groupIn(all[sandbox]), notes);
  const result = servicesSchema.safeParse(services);
  if (!result.success)
    throw usageError(`${name}: services.${issueTexts(result.error, servicesSchema).join("; services.")}.`);
  return { services, sandbox: own, notes };
}

/** Keys of the sandbox's own service that say how a container of it would be kept alive and get the project's files. */
const NOT_NEEDED = ["command", "entrypoint", "volumes", "depends_on", "working_dir", "ports", "expose"];

function sandboxIn(reader: Reader, service: string, raw: Group, notes: string[]): ComposedSandbox {
  const { image, build, environment, env_file: files, ...others } = raw;
  const settings = interpolated(reader.name, service, { image, build, environment, env_file: files });
  const ignored = Object.keys(others).filter((key) => !NOT_NEEDED.includes(key) && !key.startsWith("x-"));
  if (ignored.length > 0)
    notes.push(
      `${reader.name}: left out of ${service}, which is the sandbox: ${ignored.join(", ")}. Set them in sandbox of a file of your own.`,
    );
  const fromFiles = listIn(settings.env_file).map((entry) => envFile(reader, service, entry));
  return {
    image: settings.image === undefined ? undefined : textIn(settings.image),
    build: settings.build === undefined ? undefined : buildIn(settings.build),
    env: { ...Object.assign({}, ...fromFiles), ...variablesIn(settings.environment) },
  };
}

function buildIn(value: unknown): ComposedSandbox["build"] {
  const build = typeof value === "string" ? { context: value } : groupIn(value);
  const context = textIn(build["context"] ?? ".");
  const target = build["target"];
  return {
    context,
    dockerfile: posix.join(context, textIn(build["dockerfile"] ?? "Dockerfile")),
    args: variablesIn(build["args"]),
    target: target === undefined ? undefined : textIn(target),
  };
}

function parsedFile(path: string): Group {
  let text: string;
  try {
    text = readBoundedText(path);
  } catch (error) {
    throw unreadable(`The compose file ${path}`, error);
  }
  try {
    return groupIn(parse(text, { merge: true }));
  } catch (error) {
    throw usageError(`${path} is not valid YAML: ${reasonOf(error).split("\n")[0]}`);
  }
}

const groupIn = (value: unknown): Group =>
  typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Group) : {};
function listIn(value: unknown): unknown[] {
  if (Array.isArray(value)) return value;
  return value === undefined || value === null ? [] : [value];
}
const textIn = (value: unknown): string =>
  typeof value === "string" ? value : (JSON.stringify(value) ?? "");

interface Reader {
  /** Of the file, for messages. */
  readonly name: string;
  readonly folder: string;
  readonly workspace: string | undefined;
  /** The file's named volumes. */
  readonly volumes: Group;
  /** The services that are read. */
  readonly names: readonly string[];
}

const refused = (file: string, service: string, what: string) =>
  usageError(
    `${file}: service "${service}" uses ${what}, which a sandbox cannot have. Leave the service out with --without ${service}, or remove the line.`,
  );

/** What each key becomes. */
type Read = (value: unknown, reader: Reader, service: string) => Group;

const READ: Readonly<Record<string, Read>> = {
  image: (image) => ({ image }),
  environment: (value) => ({ env: variablesIn(value) }),
  // Read before `environment`, which comes after it.
  env_file: () => ({}),
  command: (value) => (value === null ? {} : { command: wordsIn(value) }),
  entrypoint: (value) => (value === null ? {} : { entrypoint: wordsIn(value) }),
  healthcheck: (value) => ({ health: healthIn(groupIn(value)) }),
  depends_on: (value, { name, names }, service) => ({
    dependsOn: dependenciesIn(value, name, service, names),
  }),
  user: (value) => ({ user: textIn(value) }),
  tmpfs: (value) => ({ tmpfs: listIn(value).map((folder) => textIn(folder).split(":")[0]) }),
  expose: () => ({}),
  ports: () => ({}),
  volumes: volumesIn,
  mem_limit: (value) => ({ memory: textIn(value).toLowerCase().replace(/b$/, "") }),
  cpus: (value) => ({ cpus: Number(value) }),
};

function serviceIn(reader: Reader, service: string, raw: Group, notes: string[]): Group {
  const settings = interpolated(reader.name, service, raw);
  const result: Record<string, unknown> = {};
  const ignored: string[] = [];
  for (const [key, value] of Object.entries(settings)) {
    const read = Object.hasOwn(READ, key) ? READ[key] : undefined;
    if (read !== undefined) Object.assign(result, read(value, reader, service));
    else if (IGNORED.includes(key)) ignored.push(key);
    else if (!key.startsWith("x-")) throw refused(reader.name, service, key);
  }
  if (ignored.length > 0) notes.push(`${reader.name}: left out of ${service}: ${ignored.join(", ")}.`);
  const fromFiles = listIn(settings["env_file"]).map((entry) => envFile(reader, service, entry));
  const ports = [...listIn(settings["ports"]), ...listIn(settings["expose"])].flatMap((entry) =>
    portIn(reader.name, service, entry),
  );
  return {
    ...result,
    env: { ...Object.assign({}, ...fromFiles), ...groupIn(result["env"]) },
    ports: [...new Set(ports)],
  };
}

/** Variables of the person's machine are not taken: only what the file says itself. */
function interpolated<T>(file: string, service: string, value: T): T {
  if (typeof value === "string")
    return value.replaceAll(
      /\$(?:\$|\{(\w+)(?::?-([^}]*))?[^}]*\}|(\w+))/g,
      (whole, _name, usual?: string) => {
        if (whole === "$$") return "$";
        if (usual !== undefined) return usual;
        throw refused(file, service, `${whole}, whose value is a variable of this machine`);
      },
    ) as T;
  if (Array.isArray(value)) return value.map((item: unknown) => interpolated(file, service, item)) as T;
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [key, interpolated(file, service, item)]),
  ) as T;
}

function variablesIn(value: unknown): Record<string, string> {
  const pairs = Array.isArray(value)
    ? value.map((entry) => /^([^=]*)=([^]*)$/.exec(textIn(entry))?.slice(1) ?? [])
    : Object.entries(groupIn(value)).filter(([, item]) => item !== null);
  return Object.fromEntries(
    pairs.filter(([key]) => key !== undefined).map(([key, item]) => [key, textIn(item)]),
  );
}

/** Words as a shell reads them. */
function wordsIn(value: unknown): string[] {
  if (Array.isArray(value)) return value.map(textIn);
  const parts = textIn(value).matchAll(/(?:[^\s"'\\]|\\[^]|"(?:[^"\\]|\\[^])*"|'[^']*')+/g);
  return [...parts].map(([word]) =>
    word.replaceAll(
      /"((?:[^"\\]|\\[^])*)"|'([^']*)'|\\([^])/g,
      (_, double?: string, single?: string, plain?: string) =>
        double === undefined ? (single ?? plain ?? "") : double.replaceAll(/\\([^])/g, "$1"),
    ),
  );
}

/** Compose's limits are for each test; ours is for all of them. */
function healthIn({ test, disable, interval, retries, start_period: startPeriod }: Group): Group {
  if (disable === true) return { test: ["NONE"] };
  const everyMs = parseDuration(textIn(interval)) ?? USUAL_INTERVAL_MS;
  const startMs = parseDuration(textIn(startPeriod)) ?? 0;
  const count = typeof retries === "number" ? retries : USUAL_RETRIES;
  const argv = Array.isArray(test) ? test.map(textIn) : ["CMD-SHELL", textIn(test)];
  return {
    test: test === undefined ? undefined : argv,
    interval: interval === undefined ? undefined : everyMs,
    timeout: Math.min(3_600_000, Math.max(USUAL_TIMEOUT_MS, startMs + count * everyMs)),
  };
}

const CONDITIONS: Readonly<Record<string, string>> = {
  service_started: "started",
  service_healthy: "healthy",
};

function dependenciesIn(value: unknown, file: string, service: string, names: readonly string[]): Group {
  const entries = Array.isArray(value)
    ? value.map((other) => [textIn(other), "service_started"] as const)
    : Object.entries(groupIn(value)).map(
        ([other, of]) => [other, textIn(groupIn(of)["condition"] ?? "service_started")] as const,
      );
  return Object.fromEntries(
    entries
      .filter(([other]) => names.includes(other))
      .map(([other, condition]) => {
        const kind = CONDITIONS[condition];
        if (kind === undefined) throw refused(file, service, `depends_on with ${condition}`);
        return [other, kind];
      }),
  );
}

/** The port in the container, of TCP. */
function portIn(file: string, service: string, entry: unknown): number[] {
  const text = typeof entry === "object" ? textIn(groupIn(entry)["target"]) : textIn(entry);
  const [address = "", protocol = "tcp"] = text.split("/");
  if (protocol !== "tcp") return [];
  const port = address.split(":").at(-1) ?? "";
  if (!/^\d+$/.test(port)) throw refused(file, service, `the ports ${text}`);
  return [Number(port)];
}

function volumesIn(value: unknown, reader: Reader, service: string): Group {
  const files: Record<string, string> = {};
  const dataFolders: string[] = [];
  const tmpfs: string[] = [];
  for (const entry of listIn(value)) {
    const { type, source, target } = mountIn(entry);
    if (type === "tmpfs") tmpfs.push(target);
    else if (type === "volume" && source === "") continue;
    else if (type === "volume") {
      if (groupIn(reader.volumes[source])["external"] !== undefined)
        throw refused(reader.name, service, `the external volume ${source}`);
      dataFolders.push(target);
    } else files[projectFile(reader, service, source, "the bind mount")] = target;
  }
  const data = dataFolders.length === 0 ? {} : { data: "kept", dataFolders };
  return tmpfs.length === 0 ? { files, ...data } : { files, ...data, tmpfs };
}

function mountIn(entry: unknown): {
  readonly type: string;
  readonly source: string;
  readonly target: string;
} {
  if (typeof entry === "object") {
    const { type, source = "", target = "" } = groupIn(entry);
    return { type: textIn(type), source: textIn(source), target: textIn(target) };
  }
  const [source = "", target] = textIn(entry).split(":");
  if (target === undefined) return { type: "volume", source: "", target: source };
  return { type: /^[./~]/.test(source) ? "bind" : "volume", source, target };
}

/** A file of the project, by its path in the workspace. @throws ClientError (usage) for anything else */
function projectFile(
  { name, folder, workspace }: Reader,
  service: string,
  source: string,
  what: string,
): string {
  const refusal = (why: string) => refused(name, service, `${what} ${source} (${why})`);
  if (isAbsolute(source) || source.startsWith("~")) throw refusal("a path of this machine");
  if (workspace === undefined) throw refusal("files come from --workspace");
  const root = realpathSync(workspace);
  const path = join(folder, source);
  try {
    const inside = relative(root, realpathSync(path));
    if (inside.startsWith("..") || isAbsolute(inside)) throw refusal("it leads out of the project");
    const info = lstatSync(realpathSync(path));
    if (!info.isFile()) throw refusal("no file");
    if (info.size > MAX_FILE_BYTES) throw refusal("more than 1 MiB");
    return inside;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === undefined) throw error;
    throw refusal("it cannot be read");
  }
}

function envFile(reader: Reader, service: string, entry: unknown): Record<string, string> {
  const source = typeof entry === "object" ? textIn(groupIn(entry)["path"]) : textIn(entry);
  const path = projectFile(reader, service, source, "env_file");
  const lines = readBoundedText(join(reader.workspace ?? "", path)).split("\n");
  const pairs = lines.flatMap((line) => {
    const [, key, value = ""] = /^\s*(?:export\s+)?([A-Za-z_]\w*)\s*=\s*(.*?)\s*$/.exec(line) ?? [];
    return key === undefined ? [] : [[key, value.replace(/^(["'])(.*)\1$/, "$2")] as const];
  });
  return Object.fromEntries(pairs);
}
