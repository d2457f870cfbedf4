/**
 * The proxies of the surroundings, read once for all ways out of this process: requests to providers, forges and MCP servers, and
 * the connection to Temporal. Programs that we start (git, npm) read the same variables themselves.
 */
import { BlockList, isIP } from "node:net";

type Environment = Readonly<Record<string, string | undefined>>;

/** A proxy variable with which nothing can be reached; the message begins with its name. */
export class ProxyUnusable extends Error {
  override readonly name = "ProxyUnusable";
  readonly variable: string;
  readonly fix: string;

  constructor(variable: string, { is, fix }: { readonly is: string; readonly fix: string }) {
    super(`${variable} is ${is}`);
    this.variable = variable;
    this.fix = fix;
  }
}

export interface Proxies {
  /** URLs; empty: none. */
  readonly http: string;
  readonly https: string;
  /** As in NO_PROXY. */
  readonly none: string;
}

/**
 * As curl and git read them: lower case first, ALL_PROXY for what has none of its own, and `host:port` is an http proxy.
 * @throws ProxyUnusable for what is no address, and for schemes that we cannot use, such as socks5
 */
export function readProxies(environment: Environment = process.env): Proxies {
  const all = variable(environment, "all_proxy");
  const address = (name: string) => {
    const setting = variable(environment, name) ?? all;
    return setting === undefined ? "" : proxyUrl(setting);
  };
  return {
    http: address("http_proxy"),
    https: address("https_proxy"),
    none: variable(environment, "no_proxy")?.value ?? "",
  };
}

export interface TemporalProxy {
  /** `host:port` of an HTTP proxy that opens tunnels. */
  readonly targetHost: string;
  readonly basicAuth?: { readonly username: string; readonly password: string };
}

/**
 * The proxy to a Temporal server, by the rules of gRPC, which the client's library follows: `grpc_proxy`, `https_proxy` or
 * `http_proxy`, in lower case only, unless `no_grpc_proxy` or `no_proxy` names the host's end or its network. Never for this machine.
 * @param host without a port
 * @returns undefined: directly
 * @throws ProxyUnusable for another scheme than http, which neither client nor worker can use for Temporal
 */
export function temporalProxy(
  host: string,
  environment: Environment = process.env,
): TemporalProxy | undefined {
  if (isLoopbackHost(host)) return undefined;
  const proxySetting = ["grpc_proxy", "https_proxy", "http_proxy"]
    .map((name) => ({ name, value: environment[name]?.trim() ?? "" }))
    .find(({ value }) => value !== "");
  if (proxySetting === undefined || isExcepted(host, environment)) return undefined;
  const url = new URL(proxyUrl(proxySetting));
  if (url.protocol !== "http:")
    throw new ProxyUnusable(proxySetting.name, {
      is: `${withoutCredentials(url)}, and Temporal can be reached only through a proxy of the form http://HOST:PORT`,
      fix: "Name Temporal's host in no_grpc_proxy to reach it directly.",
    });
  // The client's library reads the variable itself, and takes whole URLs only.
  if (environment === process.env) process.env[proxySetting.name] = url.href;
  const { username, password } = url;
  return {
    targetHost: `${url.hostname}:${url.port || "80"}`,
    basicAuth:
      username === ""
        ? undefined
        : { username: decodeURIComponent(username), password: decodeURIComponent(password) },
  };
}

/** Names and addresses of this machine. */
export function isLoopbackHost(host: string): boolean {
  const name = host.replace(/^\[|\]$/g, "").toLowerCase();
  return (
    name === "localhost" || name.endsWith(".localhost") || name === "::1" || /^127(\.\d+){3}$/.test(name)
  );
}

/**
 * Whether no proxy is for a URL although the library for requests would take one: it is on this machine, or NO_PROXY names its
 * network, which that library does not read.
 */
export function isDirect(url: string, { none }: Pick<Proxies, "none">): boolean {
  if (!URL.canParse(url)) return false;
  const { hostname } = new URL(url);
  return isLoopbackHost(hostname) || none.split(/[,\s]+/).some((entry) => isInNetwork(hostname, entry));
}

/**
 * The proxy for a request whose connection we make ourselves; undefined: directly. NO_PROXY as curl reads it: the end of a name,
 * with or without a dot before it, a network, or `*`.
 */
export function proxyFor(url: URL, proxies: Proxies): string | undefined {
  const proxy = url.protocol === "https:" ? proxies.https : proxies.http;
  if (proxy === "" || isDirect(url.href, proxies)) return undefined;
  const host = url.hostname.replace(/^\[|\]$/g, "");
  const isNamed = proxies.none
    .toLowerCase()
    .split(/[,\s]+/)
    .map((entry) => entry.replace(/^\*?\./, "").replace(/:\d+$/, ""))
    .some((entry) => entry === "*" || (entry !== "" && (host === entry || host.endsWith(`.${entry}`))));
  return isNamed ? undefined : proxy;
}

interface Found {
  readonly name: string;
  readonly value: string;
}

function variable(environment: Environment, lower: string): Found | undefined {
  return [lower, lower.toUpperCase()]
    .map((name) => ({ name, value: environment[name]?.trim() ?? "" }))
    .find(({ value }) => value !== "");
}

/** @throws ProxyUnusable */
function proxyUrl({ name, value }: Found): string {
  const full = /^[a-z][a-z0-9+.-]*:\/\//i.test(value) ? value : `http://${value}`;
  const url = URL.canParse(full) ? new URL(full) : undefined;
  // What is left over after host and port is none of an address: a backslash in a user's name, quotes, a slash that lacks.
  const isPlain =
    url !== undefined && /^([\w.-]+|\[[\d.:a-f]+\])$/i.test(url.hostname) && /^\/?$/.test(url.pathname);
  if (!isPlain || url.search !== "")
    throw new ProxyUnusable(name, { is: "no address of a proxy", fix: `Set ${name} to http://HOST:PORT.` });
  if ([url.username, url.password].some((text) => !isEncoded(text)))
    throw new ProxyUnusable(name, {
      is: "an address whose user or password has a % that begins no code",
      fix: `In ${name}, write % as %25.`,
    });
  if (url.protocol !== "http:" && url.protocol !== "https:")
    throw new ProxyUnusable(name, {
      is: `${withoutCredentials(url)}, and only HTTP proxies can be used`,
      fix: `Set ${name} to http://HOST:PORT, or unset it for this process.`,
    });
  return full;
}

function isEncoded(text: string): boolean {
  try {
    return decodeURIComponent(text) !== undefined;
  } catch {
    return false;
  }
}

/** Without the credentials that it may have. */
const withoutCredentials = (url: URL): string => `${url.protocol}//${url.host}`;

/** Source: gRPC's proxy mapper. A leading `*` is added to its rules, as in other programs' lists. */
function isExcepted(host: string, environment: Environment): boolean {
  const list = environment["no_grpc_proxy"] || environment["no_proxy"] || "";
  return list
    .split(",")
    .map((entry) => entry.trim())
    .filter((entry) => entry !== "")
    .some((entry) => host.endsWith(entry.replace(/^\*/, "")) || isInNetwork(host, entry));
}

/** Whether the host is an address in a network that is written as `10.0.0.0/8` or `fd00::/8`. */
function isInNetwork(host: string, entry: string): boolean {
  const [network = "", bits] = entry.split("/");
  const address = host.replace(/^\[|\]$/g, "");
  const [family, length] = [isIP(network), Number(bits)];
  if (bits === undefined || family === 0 || isIP(address) !== family) return false;
  if (!/^\d+$/.test(bits) || length > (family === 4 ? 32 : 128)) return false;
  const kind = family === 4 ? "ipv4" : "ipv6";
  const list = new BlockList();
  list.addSubnet(network, length, kind);
  return list.check(address, kind);
}
