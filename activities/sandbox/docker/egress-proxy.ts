/**
 * The egress proxy of this Docker host, for sandboxes with `network: listed`: one container of the operator's image, which
 * outlives workers. Sandboxes reach it over a socket in a volume, so they need no network at all.
 */
import type Dockerode from "dockerode";
import type { ContainerInspectInfo } from "dockerode";
import { fatal, retryable } from "../../contract/failures.ts";
import { egressProxySource, PROTOCOL, pythonArguments } from "../agent/sources.ts";
import type { RefusedRequests, SandboxEgress } from "../sandbox.ts";
import type { SandboxSpec } from "../spec.ts";
import { SandboxLost } from "../sandbox-lost.ts";
import { statusOf, unless } from "./docker-errors.ts";
import type { Firewall } from "./firewall.ts";
import { EGRESS_FOLDER } from "./egress-place.ts";
import { sandboxName, SESSION_LABEL } from "./profile.ts";
import type { Answer } from "./supervisor-stream.ts";
import { createSupervisorLink } from "./supervisor-link.ts";

/** Label of the proxy's container and volume. */
const EGRESS_LABEL = "longhaul.egress";
const SOURCE_VARIABLE = "LONGHAUL_PROXY";
/** The folder of the control socket, which `relay.py` connects to. */
const CONTROL_FOLDER = "/var/lib/longhaul";
const ROUNDS = 20;
const ROUND_MS = 100;

interface EgressProxyOptions {
  readonly docker: Dockerode;
  readonly firewall: Firewall;
  /** The operator's image, with python3 of 3.11 or newer; never the session's. */
  readonly image: string;
  /** Name of the container and of its volume. */
  readonly name: string;
  /** Further `name:address` for the proxy's look-ups. */
  readonly hosts: readonly string[];
  readonly say: (line: string) => void;
}

export type EgressProxy = ReturnType<typeof createEgressProxy>;

export function createEgressProxy({ docker, firewall, image, name, hosts, say }: EgressProxyOptions) {
  let opening: ReturnType<typeof bringUp> | undefined;

  /**
   * Starts the proxy if it is not running.
   * @returns which addresses the session's requests may go to, and what could not be determined
   * @throws ImageMissing (fatal) if its image is not there, SandboxUnavailable (retryable)
   */
  const addresses = async (spec: SandboxSpec) => firewall.rules((await open()).found, spec);

  async function request(op: string, fields: object): Promise<Answer> {
    const mine = open();
    try {
      return await (await mine).link.request(op, fields);
    } catch (error) {
      if (!(error instanceof SandboxLost)) throw error;
      if (opening === mine) close("the egress proxy ended");
      return (await open()).link.request(op, fields);
    }
  }

  function open(): ReturnType<typeof bringUp> {
    opening ??= bringUp();
    const mine = opening;
    mine.catch(() => {
      if (opening === mine) opening = undefined;
    });
    return mine;
  }

  function close(why: string): void {
    opening?.then(
      ({ link }) => link.close(why),
      () => undefined,
    );
    opening = undefined;
  }

  async function bringUp() {
    const container = docker.getContainer(name);
    for (let round = 0; round < ROUNDS; round++) {
      const found = await unless([404], () => container.inspect());
      if (found === undefined) {
        await create();
        say(`egress: created the proxy ${name}`);
        continue;
      }
      if (!isOurs(found)) {
        throw fatal(
          "SandboxRefused",
          `the container ${name} is not the egress proxy of this version; rename or remove it`,
        );
      }
      if (found.State.Running) {
        const link = createSupervisorLink(docker, found.Id, { probe: [], ready: Promise.resolve() });
        await link.connect();
        return { found, link };
      }
      await unless([304, 404, 409], () => container.start());
      if (round > 1) await new Promise((resolve) => setTimeout(resolve, ROUND_MS));
    }
    throw retryable("SandboxUnavailable", `the egress proxy ${name} does not start`);
  }

  async function create(): Promise<void> {
    const Labels = { [EGRESS_LABEL]: String(PROTOCOL) };
    try {
      await unless([], () => docker.createVolume({ Name: name, Labels }));
      // 409: another worker was faster.
      await unless([409], () =>
        docker.createContainer({
          name,
          Image: image,
          User: "0:0",
          WorkingDir: "/",
          Entrypoint: pythonArguments(SOURCE_VARIABLE),
          Cmd: [],
          Env: [`${SOURCE_VARIABLE}=${egressProxySource}`],
          Labels,
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
            Ulimits: [{ Name: "nofile", Soft: 4_096, Hard: 4_096 }],
            RestartPolicy: { Name: "no" },
            LogConfig: { Type: "none", Config: {} },
          },
        }),
      );
    } catch (error) {
      if (statusOf(error) !== 404) throw error;
      throw fatal(
        "ImageMissing",
        `sandbox.network: listed needs the image ${image} for its proxy, which does not exist on this Docker host; ` +
          "nothing was run; build it (npm start does) or set LONGHAUL_GUARD_IMAGE",
        error,
      );
    }
  }

  return {
    addresses,
    close,
    /** The proxy as seen by one session's sandbox. @param token identifies that sandbox to the proxy */
    of(spec: SandboxSpec, token: string): SandboxEgress {
      const session = sandboxName(spec.sessionId);
      return {
        allow: async (domains) => {
          // Sent each time: a restarted proxy has no rules.
          const { sets } = await addresses(spec);
          await request("set", { session, id: spec.sessionId, token, domains, ...sets });
        },
        refused: async () => {
          const { denials } = await request("denials", { session, everything: false });
          return denials as RefusedRequests[];
        },
      };
    },
    /** Drops the session's rules in the background, if this worker has used the proxy: a removed sandbox sends nothing. */
    forget(sessionId: string): void {
      opening
        ?.then(({ link }) => link.request("forget", { session: sandboxName(sessionId) }))
        .catch(() => undefined);
    },
    /** Removes the proxy if no sandbox on this host uses it. @returns whether there was one to remove */
    async removeUnused(): Promise<boolean> {
      const filters = { volume: [name], label: [SESSION_LABEL] };
      const users = await unless([], () => docker.listContainers({ all: true, filters }));
      if (users === undefined || users.length > 0) return false;
      const container = docker.getContainer(name);
      const found = await unless([404], () => container.inspect());
      if (found !== undefined && !isOurs(found)) return false;
      await unless([404, 409], () => container.remove({ force: true }));
      // 409: a sandbox that was created meanwhile uses the volume; opening it starts a new proxy.
      await unless([404, 409], () => docker.getVolume(name).remove());
      return found !== undefined;
    },
  };
}

const isOurs = (found: ContainerInspectInfo): boolean =>
  found.Config.Labels[EGRESS_LABEL] === String(PROTOCOL);
