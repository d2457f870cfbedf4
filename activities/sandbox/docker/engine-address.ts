/**
 * Which Docker engine is used, as the person's own `docker` command chooses it: DOCKER_HOST, else the context (DOCKER_CONTEXT or the
 * current one), else the default socket. The only reader of these settings: sandbox, probe, set-up and doctor all ask here.
 */
import { createHash } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { Agent } from "node:https";
import { homedir } from "node:os";
import { join } from "node:path";
import type Dockerode from "dockerode";

type Environment = Readonly<Record<string, string | undefined>>;

export interface EngineAddress {
  /** Options for the engine's client; nothing is left for it to read from the environment. */
  readonly client: Dockerode.DockerOptions;
  /** For people: `tcp://[::1]:2375`, `unix:///var/run/docker.sock`. */
  readonly shown: string;
  /** Where it comes from: `DOCKER_HOST`, `docker context NAME`, or `default`. */
  readonly from: string;
}

/** A setting with which no engine can be reached; the message begins with its name. */
export class EngineSettingWrong extends Error {
  override readonly name = "EngineSettingWrong";
  constructor(variable: string, reason: string) {
    super(`${variable} ${reason}`);
  }
}

const DEFAULT_SOCKET = "/var/run/docker.sock";
/** Ports of the engine without and with TLS. Source: Docker's own client. */
const PORT = 2375;
const TLS_PORT = 2376;
const PEMS = ["ca", "cert", "key"] as const;
type Pem = (typeof PEMS)[number];

/** What a context or the environment says about TLS; the files are optional one by one, as for `docker`. */
interface Tls {
  readonly folder: string | undefined;
  readonly verify: boolean;
  /** Whether all three files must be there. */
  readonly isWhole: boolean;
}

/** @throws EngineSettingWrong for an address, a context or a certificate that cannot be used */
export function engineAddress(environment: Environment = process.env): EngineAddress {
  const host = environment["DOCKER_HOST"]?.trim();
  if (host) {
    const verify = Boolean(environment["DOCKER_TLS_VERIFY"]);
    const certificateFolder = environment["DOCKER_CERT_PATH"] || undefined;
    const trusts = Boolean(environment["DOCKER_TLS"]);
    const folder = certificateFolder ?? (verify || trusts ? configFolder(environment) : undefined);
    const isWhole = verify || certificateFolder !== undefined;
    const tls = isWhole || trusts ? { folder, verify, isWhole } : undefined;
    return { ...reached(host, tls, "DOCKER_HOST", environment), from: "DOCKER_HOST" };
  }
  const context = contextName(environment);
  if (context !== undefined) return contextAddress(context, environment);
  const socket = defaultSocket(environment);
  return { client: { socketPath: socket }, shown: `unix://${socket}`, from: "default" };
}

const homeOf = (environment: Environment): string => environment["HOME"] || homedir();
const configFolder = (environment: Environment): string =>
  environment["DOCKER_CONFIG"] || join(homeOf(environment), ".docker");

/** Newer Docker Desktop has its socket in the person's home. */
function defaultSocket(environment: Environment): string {
  if (existsSync(DEFAULT_SOCKET)) return DEFAULT_SOCKET;
  const userSocket = join(homeOf(environment), ".docker", "run", "docker.sock");
  return existsSync(userSocket) ? userSocket : DEFAULT_SOCKET;
}

/** @returns undefined for the default context, and where nothing names one */
function contextName(environment: Environment): string | undefined {
  const context = environment["DOCKER_CONTEXT"] || currentContext(environment);
  return context === undefined || context === "default" ? undefined : context;
}

function currentContext(environment: Environment): string | undefined {
  const file = join(configFolder(environment), "config.json");
  let text: string;
  try {
    text = readFileSync(file, "utf8");
  } catch {
    // As for `docker`: no file, or one that this user may not read, is no context.
    return undefined;
  }
  const settings = parsed(text, file);
  const current = settings["currentContext"];
  return typeof current === "string" && current !== "" ? current : undefined;
}

function parsed(text: string, file: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null) return { ...value };
  } catch {
    // Reported below.
  }
  throw new EngineSettingWrong(
    file,
    "is not JSON, so the Docker context cannot be read; mend it, or set DOCKER_HOST",
  );
}

/** The files of a context are named after its name's SHA-256. Source: docker/cli, its context store. */
function contextAddress(name: string, environment: Environment): EngineAddress {
  const from = `docker context ${name}`;
  const id = createHash("sha256").update(name).digest("hex");
  const contexts = join(configFolder(environment), "contexts");
  const file = join(contexts, "meta", id, "meta.json");
  const variable = environment["DOCKER_CONTEXT"] ? "DOCKER_CONTEXT" : "The current Docker context";
  if (!existsSync(file))
    throw new EngineSettingWrong(
      variable,
      `is ${name}, and there is no such context; choose one with docker context use, or set DOCKER_HOST`,
    );
  const meta = parsed(readFileSync(file, "utf8"), file);
  const endpoint = (
    meta["Endpoints"] as Record<string, { Host?: unknown; SkipTLSVerify?: unknown }> | undefined
  )?.["docker"];
  if (typeof endpoint?.Host !== "string" || endpoint.Host === "")
    throw new EngineSettingWrong(variable, `is ${name}, and that context names no engine; set DOCKER_HOST`);
  const folder = join(contexts, "tls", id, "docker");
  const skips = endpoint.SkipTLSVerify === true;
  const tls =
    existsSync(folder) || skips
      ? { folder: existsSync(folder) ? folder : undefined, verify: !skips, isWhole: false }
      : undefined;
  return { ...reached(endpoint.Host, tls, variable, environment), from };
}

function reached(
  host: string,
  tls: Tls | undefined,
  variable: string,
  environment: Environment,
): Omit<EngineAddress, "from"> {
  const fullAddress = host.includes("://") ? host : `tcp://${host}`;
  if (fullAddress.startsWith("unix://")) {
    const socketPath = fullAddress.slice("unix://".length) || defaultSocket(environment);
    return { client: { socketPath }, shown: `unix://${socketPath}` };
  }
  if (fullAddress.startsWith("npipe://"))
    return { client: { socketPath: fullAddress.slice("npipe://".length) }, shown: fullAddress };
  const scheme = /^(tcp|https?|ssh):\/\//.exec(fullAddress)?.[1];
  // A scheme without a port of its own: URL drops those that it knows.
  const plain = fullAddress.replace(/^https?:/, "tcp:");
  const url = URL.canParse(plain) ? new URL(plain) : undefined;
  if (url === undefined || url.hostname === "" || scheme === undefined)
    throw new EngineSettingWrong(
      variable,
      `is ${JSON.stringify(host)}, which is no address of an engine; expected such as unix:///var/run/docker.sock, tcp://HOST:2376 or ssh://USER@HOST`,
    );
  // Brackets belong to the URL, not to the host.
  const name = url.hostname.replace(/^\[|\]$/g, "");
  const agent = environment["SSH_AUTH_SOCK"];
  if (scheme === "ssh")
    return {
      client: {
        protocol: "ssh",
        host: name,
        port: url.port || 22,
        username: decodeURIComponent(url.username),
        sshOptions: agent === undefined ? undefined : { agent },
      },
      shown: fullAddress,
    };
  const secure = tls !== undefined || scheme === "https" || url.port === String(TLS_PORT);
  const port = Number(url.port || (secure ? TLS_PORT : PORT));
  if (!secure) return { client: { protocol: "http", host: name, port }, shown: fullAddress };
  const files = certificates(tls);
  const unverified =
    tls?.verify === false ? { agent: new Agent({ ...files, rejectUnauthorized: false }) } : {};
  return { client: { protocol: "https", host: name, port, ...files, ...unverified }, shown: fullAddress };
}

/** @throws EngineSettingWrong that names a missing file */
function certificates(tls: Tls | undefined): Pick<Dockerode.DockerOptions, Pem> {
  if (tls?.folder === undefined) return {};
  const { folder, isWhole } = tls;
  const files: { [name in Pem]?: Buffer } = {};
  for (const name of PEMS) {
    const path = join(folder, `${name}.pem`);
    if (existsSync(path)) files[name] = readFileSync(path);
    else if (isWhole)
      throw new EngineSettingWrong("DOCKER_CERT_PATH", `is ${folder}, which has no ${name}.pem`);
  }
  return files;
}
