/**
 * The egress proxy of this Docker host, for sandboxes with `network: listed`, and this worker's connection to it. Sandboxes reach
 * it over a socket in a volume, so they need no network at all.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type Dockerode from "dockerode";
import type { ContainerInspectInfo, ContainerCreateOptions } from "dockerode";
import { fatal, retryable } from "../../contract/failures.ts";
import { egressProxySource, PROTOCOL, pythonArguments } from "../agent/sources.ts";
import type { SandboxSpec } from "../sandbox-host.ts";
import { type KeyUse, type RefusedRequests, type SandboxEgress, SandboxLost } from "../sandbox.ts";
import { ownVolume } from "./docker-containers.ts";
import { statusOf, unless } from "./docker-errors.ts";
import type { Firewall } from "./firewall.ts";
import { sandboxName, SESSION_LABEL, EGRESS_FOLDER } from "./profile.ts";
import type { Certificates, PreparedKeys } from "./session-keys.ts";
import { SupervisorLink } from "./supervisor-link.ts";
import type { SupervisorAnswer } from "./supervisor-stream.ts";

interface EgressProxyOptions extends EgressContainer {
  readonly docker: Dockerode;
  readonly firewall: Firewall;
}

interface OpenProxy {
  readonly info: ContainerInspectInfo;
  readonly link: SupervisorLink;
}

export class EgressProxy {
  readonly #options: EgressProxyOptions;
  #opening: Promise<OpenProxy> | undefined;

  constructor(options: EgressProxyOptions) {
    this.#options = options;
  }

  /**
   * Starts the proxy if it is not running.
   * @returns which addresses the session's requests may go to, and what could not be determined
   * @throws ImageMissing (fatal) if its image is not there, SandboxUnavailable (retryable)
   */
  async addresses(spec: SandboxSpec): ReturnType<Firewall["rules"]> {
    const { info } = await this.#open();
    return this.#options.firewall.rules(info, spec);
  }

  /** The proxy as seen by one session's sandbox. @param token identifies that sandbox to the proxy */
  of({ spec, told, hosts }: PreparedKeys, token: string): SandboxEgress {
    const session = sandboxName(spec.sessionId);
    return {
      allow: async (domains) => {
        // Sent each time: a restarted proxy has no rules.
        const { sets, registries } = await this.addresses(spec);
        const rules = { id: spec.sessionId, token, domains: [...domains, ...hosts], ...sets, registries };
        await this.#request("set", { session, ...rules, ...told() });
      },
      refused: async () => {
        const { denials } = await this.#request("denials", { session, everything: false });
        return denials as RefusedRequests[];
      },
      keyUses: async () => {
        const { uses } = await this.#request("keys", { session });
        return uses as KeyUse[];
      },
    };
  }

  /** What proves the key hosts to the session's sandbox, if the proxy has it. */
  async certificate(sessionId: string): Promise<Certificates | undefined> {
    const { certificate } = await this.#request("certificate", { session: sandboxName(sessionId) });
    return (certificate as Certificates | null) ?? undefined;
  }

  /** Drops the session's rules in the background, if this worker has used the proxy: a removed sandbox sends nothing. */
  forget(sessionId: string): void {
    this.#opening
      ?.then(({ link }) => link.request("forget", { session: sandboxName(sessionId) }))
      .catch(() => undefined);
  }

  /** Removes the proxy if no sandbox on this host uses it. @returns whether there was one to remove */
  removeUnused(): Promise<boolean> {
    return removeUnusedProxy(this.#options.docker, this.#options.name);
  }

  close(why: string): void {
    this.#opening?.then(
      ({ link }) => link.close(why),
      () => undefined,
    );
    this.#opening = undefined;
  }

  async #request(op: string, fields: object): Promise<SupervisorAnswer> {
    const opening = this.#open();
    try {
      return await (await opening).link.request(op, fields);
    } catch (error) {
      if (!(error instanceof SandboxLost)) throw error;
      if (this.#opening === opening) this.close("the egress proxy ended");
      return (await this.#open()).link.request(op, fields);
    }
  }

  #open(): Promise<OpenProxy> {
    if (this.#opening !== undefined) return this.#opening;
    const opening = this.#connect();
    this.#opening = opening;
    // A failure is not kept.
    opening.catch(() => {
      if (this.#opening === opening) this.#opening = undefined;
    });
    return opening;
  }

  async #connect(): Promise<OpenProxy> {
    const { docker } = this.#options;
    const info = await runningProxy(docker, this.#options);
    const link = new SupervisorLink(docker, info.Id, { probe: [], ready: Promise.resolve() });
    await link.connect();
    return { info, link };
  }
}

/** Label of the proxy's container and volume. */
const EGRESS_LABEL = "longhaul.egress";
/** Labels by which both are known as ours. */
export const EGRESS_LABELS = { [EGRESS_LABEL]: String(PROTOCOL) };
const SOURCE_VARIABLE = "LONGHAUL_PROXY";
/** The folder of the control socket, which `relay.py` connects to. */
const CONTROL_FOLDER = "/var/lib/longhaul";
const ROUNDS = 20;
const ROUND_MS = 100;

interface EgressContainer {
  /** The operator's image, with python3 of 3.11 or newer; never the session's. */
  readonly image: string;
  /** Name of the container and of its volume. */
  readonly name: string;
  /** Further `name:address` for the proxy's look-ups. */
  readonly hosts: readonly string[];
  readonly say: (line: string) => void;
}

/**
 * The running container, which is created or started if needed.
 * @throws ImageMissing (fatal) if its image is not there, SandboxRefused (fatal), SandboxUnavailable (retryable)
 */
async function runningProxy(docker: Dockerode, proxy: EgressContainer): Promise<ContainerInspectInfo> {
  const { name, say } = proxy;
  const container = docker.getContainer(name);
  for (let round = 0; round < ROUNDS; round++) {
    const info = await unless([404], () => container.inspect());
    if (info === undefined) {
      await createProxy(docker, proxy);
      say(`egress: created the proxy ${name}`);
      continue;
    }
    if (!isOurs(info)) {
      throw fatal(
        "SandboxRefused",
        `the container ${name} is not the egress proxy of this version; rename or remove it`,
      );
    }
    if (info.State.Running) return info;
    await unless([304, 404, 409], () => container.start());
    if (round > 1) await sleep(ROUND_MS);
  }
  throw retryable("SandboxUnavailable", `the egress proxy ${name} does not start`);
}

/** Removes the proxy if no sandbox on this host uses it. @returns whether there was one to remove */
async function removeUnusedProxy(docker: Dockerode, name: string): Promise<boolean> {
  const filters = { volume: [name], label: [SESSION_LABEL] };
  const users = await unless([], () => docker.listContainers({ all: true, filters }));
  if (users === undefined || users.length > 0) return false;
  const container = docker.getContainer(name);
  const info = await unless([404], () => container.inspect());
  if (info !== undefined && !isOurs(info)) return false;
  await unless([404, 409], () => container.remove({ force: true, v: true }));
  // 409: a sandbox that was created meanwhile uses the volume; opening it starts a new proxy.
  await unless([404, 409], () => docker.getVolume(name).remove());
  return info !== undefined;
}

async function createProxy(docker: Dockerode, proxy: EgressContainer): Promise<void> {
  const options = proxyOptions(proxy);
  await ownVolume(docker, proxy.name, EGRESS_LABELS);
  // 409: another worker was faster.
  await unless([409], () => createContainer(docker, options));
}

async function createContainer(docker: Dockerode, options: ContainerCreateOptions): Promise<void> {
  try {
    await docker.createContainer(options);
  } catch (error) {
    if (statusOf(error) !== 404) throw error;
    throw fatal(
      "ImageMissing",
      `sandbox.network: listed needs the image ${options.Image} for its proxy, which does not exist on this Docker host; ` +
        "nothing was run; build it (npm start does) or set LONGHAUL_GUARD_IMAGE",
      error,
    );
  }
}

const proxyOptions = ({ name, image, hosts }: EgressContainer) =>
  ({
    name,
    Image: image,
    User: "0:0",
    WorkingDir: "/",
    Entrypoint: pythonArguments(SOURCE_VARIABLE),
    Cmd: [],
    Env: [`${SOURCE_VARIABLE}=${egressProxySource()}`],
    Labels: EGRESS_LABELS,
    Healthcheck: { Test: ["NONE"] },
    HostConfig: {
      Init: true,
      NetworkMode: "bridge",
      CapDrop: ["ALL"],
      SecurityOpt: ["no-new-privileges:true"],
      ReadonlyRootfs: true,
      Mounts: [{ Type: "volume", Source: name, Target: EGRESS_FOLDER }],
      Tmpfs: { [CONTROL_FOLDER]: "rw,nosuid,nodev,noexec,mode=700,size=1m" },
      ExtraHosts: [...hosts],
      PidsLimit: 64,
      Memory: 512 * 2 ** 20,
      Ulimits: [{ Name: "nofile", Soft: 8_192, Hard: 8_192 }],
      RestartPolicy: { Name: "no" },
      LogConfig: { Type: "none", Config: {} },
    },
  }) satisfies ContainerCreateOptions;

const isOurs = (info: ContainerInspectInfo): boolean => info.Config.Labels[EGRESS_LABEL] === String(PROTOCOL);
