/**
 * Shuts a sandbox off from private addresses: by a container of the operator's image that lives for this alone, shares the
 * sandbox's network and loads the rules into it. Works through the engine's API alone.
 */
import { lookup } from "node:dns/promises";
import { networkInterfaces } from "node:os";
import type Dockerode from "dockerode";
import type { ContainerInspectInfo } from "dockerode";
import { cutChars } from "../../contract/cut-text.ts";
import { guardSource, pythonArguments } from "../agent/sources.ts";
import { statusOf, unavailable } from "./docker-errors.ts";
import { parseHostAddresses } from "./host-addresses.ts";
import { networkRules, type NetworkRules } from "./firewall-rules.ts";
import { GUARD_LABEL } from "./profile.ts";
import { runOnce } from "./run-once.ts";
import type { SandboxSpec } from "../sandbox.ts";

/** The host's addresses change when networks come and go. */
const HOST_ADDRESSES_MS = 60_000;
const SYSTEM_PATH = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

interface GuardReport {
  /** What could not be done, one line each; empty where the rules are in force. */
  readonly troubles: readonly string[];
  /** Addresses of `rules.probe` that can be reached from the sandbox's namespace. */
  readonly reachable: readonly string[];
}

export interface NetworkGuard {
  /** Begins to ask what `rules` needs to know of the host, so that it is there by then. */
  prepare(): void;
  /** What the running container must not reach. */
  rules(
    found: ContainerInspectInfo,
    spec: SandboxSpec,
  ): Promise<NetworkRules & { troubles: readonly string[] }>;
  /**
   * Puts the rules in force and tries them. Doing it again replaces them. They end with the sandbox's network namespace: a
   * container that was restarted needs them again.
   */
  raise(found: ContainerInspectInfo, spec: SandboxSpec, rules: NetworkRules): Promise<GuardReport>;
}

/** @param image the operator's, with python3 and nft; never the session's */
export function createNetworkGuard(docker: Dockerode, image: string): NetworkGuard {
  let host: { readonly addresses: Promise<string[]>; readonly atMs: number } | undefined;

  /** The host's own, where the engine runs: the worker may be in a container or on another machine. */
  function hostAddresses(): Promise<string[]> {
    if (host === undefined || performance.now() - host.atMs > HOST_ADDRESSES_MS) {
      const addresses = readHostAddresses(docker, image);
      addresses.catch(() => (host = undefined));
      host = { addresses, atMs: performance.now() };
    }
    return host.addresses;
  }

  return {
    prepare() {
      hostAddresses().catch(() => undefined);
    },
    async rules(found, spec) {
      const networks = Object.values(found.NetworkSettings.Networks);
      const troubles: string[] = [];
      const ofHost = await hostAddresses().catch((error: unknown) => {
        troubles.push(`the host's own addresses are not known: ${troubleOf(error, image)}`);
        return [];
      });
      const gateways = networks.flatMap((each) => [each.Gateway, each.IPv6Gateway]);
      const known = [...gateways, ...ofHost, ...workerAddresses(), ...(await engineAddresses(docker))];
      const rules = networkRules({
        host: [...new Set(known)].filter((address) => address !== ""),
        subnets: networks.flatMap((each) => [
          ...(each.IPAddress === "" ? [] : [`${each.IPAddress}/${each.IPPrefixLen}`]),
          ...(each.GlobalIPv6Address === "" ? [] : [`${each.GlobalIPv6Address}/${each.GlobalIPv6PrefixLen}`]),
        ]),
        allow: spec.allow ?? [],
      });
      return { ...rules, troubles };
    },
    async raise(found, spec, rules) {
      try {
        const said = await runOnce(docker, {
          Image: image,
          User: "0:0",
          Entrypoint: pythonArguments("LONGHAUL_GUARD"),
          Env: [
            SYSTEM_PATH,
            `LONGHAUL_GUARD=${guardSource}`,
            `LONGHAUL_ORDER=${JSON.stringify({ rules: rules.ruleset, probe: rules.probe })}`,
          ],
          Labels: { [GUARD_LABEL]: spec.sessionId },
          HostConfig: {
            NetworkMode: `container:${found.Id}`,
            CapAdd: ["NET_ADMIN"],
            // A runtime with a network of its own must be asked by its own means.
            ...(spec.runtime === undefined ? {} : { Runtime: spec.runtime }),
          },
        });
        return parseReport(said);
      } catch (error) {
        return { troubles: [troubleOf(error, image)], reachable: [] };
      }
    },
  };
}

/** The addresses of the machine that the engine runs on, read in its network namespace. @throws Error */
export async function readHostAddresses(docker: Dockerode, image: string): Promise<string[]> {
  const said = await runOnce(docker, {
    Image: image,
    User: "65534:65534",
    Entrypoint: ["cat", "/proc/net/fib_trie", "/proc/net/if_inet6"],
    Env: [SYSTEM_PATH],
    Labels: { [GUARD_LABEL]: "host" },
    // User namespaces and the host's network exclude each other.
    HostConfig: { NetworkMode: "host", UsernsMode: "host" },
  });
  const addresses = parseHostAddresses(said);
  if (addresses.length === 0) throw new GuardFailed(`it answered ${JSON.stringify(cutChars(said, 100))}`);
  return addresses;
}

const workerAddresses = (): string[] =>
  Object.values(networkInterfaces()).flatMap((each) => each?.map(({ address }) => address) ?? []);

/** Where the engine is reached over a network, its name's addresses may be those of no interface. */
async function engineAddresses(docker: Dockerode): Promise<string[]> {
  const { host } = docker.modem as { host?: unknown };
  if (typeof host !== "string" || host === "") return [];
  const found = await lookup(host, { all: true }).catch(() => []);
  return found.map(({ address }) => address);
}

function parseReport(said: string): GuardReport {
  try {
    const { troubles, reachable } = JSON.parse(said) as GuardReport;
    return { troubles: [...troubles], reachable: [...reachable] };
  } catch {
    throw new GuardFailed(`the guard container answered ${JSON.stringify(cutChars(said, 200))}`);
  }
}

/** The container ran, and did not do what it was for. */
class GuardFailed extends Error {}

/** @throws SandboxUnavailable (retryable) where the engine did not answer, which says nothing about the walls */
function troubleOf(error: unknown, image: string): string {
  if (error instanceof GuardFailed) return error.message;
  const status = statusOf(error);
  // 409 and 5xx are of the moment, as a full disk is: they are tried again.
  if (status === undefined || status === 409 || status >= 500) throw unavailable(error);
  const message = error instanceof Error ? error.message : String(error);
  return status === 404 && /image/i.test(message)
    ? `there is no image ${image} on this Docker host (\`npm start\` makes it)`
    : message;
}
