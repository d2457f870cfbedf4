/**
 * Blocks a sandbox's access to private addresses: a short-lived container of the operator's image shares the sandbox's network
 * and loads the rules into it. Uses only the engine's API.
 */
import { lookup } from "node:dns/promises";
import { networkInterfaces } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import type Dockerode from "dockerode";
import type { ContainerInspectInfo } from "dockerode";
import { passes, reasonOf } from "../../contract/errors.ts";
import { cutChars } from "../../text/cut.ts";
import { firewallSource, pythonArguments } from "../agent/sources.ts";
import type { SandboxSpec } from "../sandbox-host.ts";
import { cachedFor } from "../shared-work.ts";
import { statusOf, unavailable } from "./docker-errors.ts";
import {
  parseHostAddresses,
  refusedLately,
  type NetworkEndpoint,
  networkRules,
  type NetworkRules,
} from "./firewall-rules.ts";
import { GUARD_LABEL, INSTALLATION_LABEL } from "./profile.ts";
import { runOnce } from "./run-program.ts";

/** The host's addresses change when networks come and go. */
const HOST_ADDRESSES_MS = 60_000;
const SYSTEM_PATH = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

interface FirewallReport {
  /** What failed, one line each; empty if the rules are in force. */
  readonly troubles: readonly string[];
  /** Addresses of `rules.probe` that can be reached from the sandbox's namespace. */
  readonly reachable: readonly string[];
}

export class Firewall {
  readonly #docker: Dockerode;
  readonly #image: string;
  readonly #addressesOf = createResolver();
  /** Addresses of the machine that the engine runs on: the worker may be in a container or on another machine. */
  readonly #hostAddresses: () => Promise<string[]>;

  /** @param image the operator's, with python3 and nft; never the session's */
  constructor(docker: Dockerode, image: string) {
    this.#docker = docker;
    this.#image = image;
    this.#hostAddresses = cachedFor(HOST_ADDRESSES_MS, () => readHostAddresses(docker, image));
  }

  /** Starts fetching the host's addresses and those of registries, which `rules` needs. */
  prefetch(spec: SandboxSpec): void {
    this.#addressesOf(spec.settings?.registries ?? []).catch(() => undefined);
    this.#hostAddresses().catch(() => undefined);
  }

  /** The rules for the running container. */
  async rules(
    info: ContainerInspectInfo,
    spec: SandboxSpec,
  ): Promise<NetworkRules & { readonly troubles: readonly string[] }> {
    const networks = Object.values(info.NetworkSettings.Networks);
    const troubles: string[] = [];
    const ofHost = await this.#hostAddresses().catch((error: unknown) => {
      troubles.push(`the host's own addresses are unknown: ${troubleOf(error, this.#image)}`);
      return [];
    });
    const gateways = networks.flatMap((network) => [network.Gateway, network.IPv6Gateway]);
    const addresses = [
      ...gateways,
      ...ofHost,
      ...workerAddresses(),
      ...(await engineAddresses(this.#docker)),
    ];
    const rules = networkRules({
      host: [...new Set(addresses)].filter((address) => address !== ""),
      subnets: networks.flatMap(subnetsOf),
      allow: spec.allow ?? [],
      registries: await this.#addressesOf(spec.settings?.registries ?? []),
    });
    return { ...rules, troubles };
  }

  /**
   * Applies the rules and probes them; a second call replaces them. They disappear with the sandbox's network namespace, so a
   * restarted container needs them again.
   */
  async apply(info: ContainerInspectInfo, spec: SandboxSpec, rules: NetworkRules): Promise<FirewallReport> {
    try {
      const request = JSON.stringify({ rules: rules.ruleset, probe: rules.probe });
      const environment = [`LONGHAUL_FIREWALL=${firewallSource}`, `LONGHAUL_ORDER=${request}`];
      const program = pythonArguments("LONGHAUL_FIREWALL");
      return parseReport(await this.#runInNetwork(info, spec, program, environment));
    } catch (error) {
      return { troubles: [troubleOf(error, this.#image)], reachable: [] };
    }
  }

  /** What the rules refused in the last `withinMs`; empty if that cannot be read. Takes some 0.4 s. */
  async refused(info: ContainerInspectInfo, spec: SandboxSpec, withinMs: number): Promise<NetworkEndpoint[]> {
    try {
      const program = ["nft", "-j", "list", "table", "inet", "longhaul"];
      return refusedLately(await this.#runInNetwork(info, spec, program), withinMs);
    } catch {
      // Without the table, nft prints an error instead.
      return [];
    }
  }

  /** Runs a program of the operator's image in the sandbox's network. */
  #runInNetwork(
    info: ContainerInspectInfo,
    spec: SandboxSpec,
    program: string[],
    environment: readonly string[] = [],
  ): Promise<string> {
    return runOnce(this.#docker, {
      Image: this.#image,
      User: "0:0",
      Entrypoint: program,
      Env: [SYSTEM_PATH, ...environment],
      Labels: { [GUARD_LABEL]: spec.sessionId, [INSTALLATION_LABEL]: spec.installation ?? "" },
      HostConfig: {
        NetworkMode: `container:${info.Id}`,
        CapAdd: ["NET_ADMIN"],
        // A runtime may have a network of its own.
        Runtime: spec.runtime,
      },
    });
  }
}

/** The addresses of the machine that the engine runs on, read in its network namespace. @throws Error */
export async function readHostAddresses(docker: Dockerode, image: string): Promise<string[]> {
  const output = await runOnce(docker, {
    Image: image,
    User: "65534:65534",
    Entrypoint: ["cat", "/proc/net/fib_trie", "/proc/net/if_inet6"],
    Env: [SYSTEM_PATH],
    Labels: { [GUARD_LABEL]: "host" },
    // User namespaces and the host's network exclude each other.
    HostConfig: { NetworkMode: "host", UsernsMode: "host" },
  });
  const addresses = parseHostAddresses(output);
  if (addresses.length === 0)
    throw new FirewallFailed(`it answered ${JSON.stringify(cutChars(output, 100))}`);
  return addresses;
}

/** The networks of a container, `address/length`. */
const subnetsOf = (network: Dockerode.NetworkInfo): string[] => [
  ...(network.IPAddress === "" ? [] : [`${network.IPAddress}/${network.IPPrefixLen}`]),
  ...(network.GlobalIPv6Address === ""
    ? []
    : [`${network.GlobalIPv6Address}/${network.GlobalIPv6PrefixLen}`]),
];

const workerAddresses = (): string[] =>
  Object.values(networkInterfaces()).flatMap((addresses) => addresses?.map(({ address }) => address) ?? []);

/** If the engine is reached over a network, its name may resolve to addresses of no interface. */
async function engineAddresses(docker: Dockerode): Promise<string[]> {
  const { host } = docker.modem as { host?: unknown };
  if (typeof host !== "string" || host === "") return [];
  const addresses = await lookup(host, { all: true }).catch(() => []);
  return addresses.map(({ address }) => address);
}

function parseReport(output: string): FirewallReport {
  try {
    const { troubles, reachable } = JSON.parse(output) as FirewallReport;
    return { troubles: [...troubles], reachable: [...reachable] };
  } catch {
    throw new FirewallFailed(`the firewall container answered ${JSON.stringify(cutChars(output, 200))}`);
  }
}

/** The firewall container ran but failed. */
class FirewallFailed extends Error {}

/** @throws SandboxUnavailable (retryable) if the engine did not answer, which says nothing about the firewall */
function troubleOf(error: unknown, image: string): string {
  if (error instanceof FirewallFailed) return error.message;
  const status = statusOf(error);
  if (status === undefined || (status !== 404 && passes.engine(status))) throw unavailable(error);
  const message = reasonOf(error);
  return status === 404 && /image/i.test(message)
    ? `the image ${image} does not exist on this Docker host (\`npm start\` builds it)`
    : message;
}

/** How long a name's address is usually valid. */
const CACHED_MS = 60_000;
/** A sandbox waits no longer than this for look-ups; a name that does not resolve cannot be reached from it either. */
const TIMEOUT_MS = 2_000;

/** @returns a function from `host:port` to addresses; names that have none now are left out. It never rejects. */
function createResolver(): (hosts: readonly string[]) => Promise<NetworkEndpoint[]> {
  const lookups = new Map<string, () => Promise<NetworkEndpoint[]>>();
  const resolve = (host: string): Promise<NetworkEndpoint[]> => {
    const ask = lookups.get(host) ?? cachedFor(CACHED_MS, () => addressesOf(host));
    lookups.set(host, ask);
    return ask().catch(() => []);
  };
  return async (hosts) => {
    const timer = new AbortController();
    const late = sleep(TIMEOUT_MS, [], { signal: timer.signal });
    late.catch(() => undefined);
    try {
      const endpoints = await Promise.all(hosts.map((host) => Promise.race([resolve(host), late])));
      const unique = new Map(
        endpoints.flat().map((endpoint) => [`${endpoint.address} ${endpoint.port}`, endpoint]),
      );
      return [...unique.values()];
    } finally {
      timer.abort();
    }
  };
}

async function addressesOf(host: string): Promise<NetworkEndpoint[]> {
  const { hostname, port } = new URL(`http://${host}`);
  const addresses = await lookup(hostname.replace(/^\[(.*)\]$/, "$1"), { all: true });
  // The URL parser drops the default port of `http`.
  return addresses.map(({ address }) => ({ address, port: Number(port || "80") }));
}
