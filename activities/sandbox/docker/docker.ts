/** The Docker adapter of the sandbox port: one container and one volume for each session. */
import type Dockerode from "dockerode";
import type { ContainerInspectInfo } from "dockerode";
import type { KeyRing } from "../../config/key-settings.ts";
import { DEFAULT_IMAGE } from "../../config/sandbox-settings.ts";
import {
  besideSession,
  type KeptSetUps,
  type SandboxHost,
  type OwnSession,
  type SandboxSpec,
} from "../sandbox-host.ts";
import { cachedFor } from "../shared-work.ts";
import { findHome } from "./base-homes.ts";
import { createBases, removeOldBases } from "./bases.ts";
import { buildImage } from "./build-image.ts";
import {
  labelledSessions,
  removeSandbox,
  stopSandbox,
  volumeIdentity,
  writtenBytes,
} from "./docker-containers.ts";
import { unless } from "./docker-errors.ts";
import { EgressProxy } from "./egress-proxy.ts";
import { Firewall } from "./firewall.ts";
import type { Surroundings } from "./profile-differences.ts";
import { DEFAULT_EGRESS_NAME, sandboxName, imageVolumes, isOwnedBy } from "./profile.ts";
import { engineDisk } from "./run-program.ts";
import { SandboxLinks } from "./sandbox-links.ts";
import { SessionKeys } from "./session-keys.ts";
import { SandboxOpener } from "./sandbox-opener.ts";
import {
  findKept,
  keepAs,
  makersOfKept,
  removeKeptOf,
  removeOldKept,
  MADE_FROM_LABEL,
} from "./set-up-images.ts";
import { createDockerServices } from "./services/docker-services.ts";
import { removeOrphanServices } from "./services/find-services.ts";
import { ImageCheck } from "./unfit-image.ts";

export interface DockerHostOptions {
  readonly docker: Dockerode;
  /** Name of this host, for the ledger and the task queue. */
  readonly name: string;
  /** The operator's image that runs the firewall, with python3 and nft; default the one that the set-up builds. */
  readonly guardImage?: string;
  /** Names the installation whose sessions it serves: nothing of another one is used or removed. Default: none, as in trials. */
  readonly installation?: (() => Promise<string>) | undefined;
  /** The proxy of `network: listed`: its container, and further `name:address` for its look-ups. */
  readonly egress?: { readonly name: string; readonly hosts: readonly string[] };
  /** What sandboxes can use and not read. Default: nothing, as in trials. */
  readonly keys?: KeyRing | undefined;
  /** Called with one line for each action. */
  readonly say?: (line: string) => void;
}

/** One proxy per host, shared by the workers of all installations. */
const EGRESS = { name: DEFAULT_EGRESS_NAME, hosts: [] };

const NO_KEYS: KeyRing = { definitions: {}, valueOf: () => undefined };

/** @returns a plain object, so that a caller can replace parts of it in a copy */
export function createDockerHost({
  docker,
  name,
  guardImage = DEFAULT_IMAGE,
  installation = async () => "",
  egress = EGRESS,
  keys: ring = NO_KEYS,
  say = () => undefined,
}: DockerHostOptions): SandboxHost {
  const firewall = new Firewall(docker, guardImage);
  const proxy = new EgressProxy({ docker, firewall, image: guardImage, say, ...egress });
  const certificatesOf = (sessionId: string) => proxy.certificate(sessionId);
  const keys = new SessionKeys({ docker, image: guardImage, certificatesOf, ring });
  const links = new SandboxLinks(docker, firewall, proxy);
  const engine = engineSurroundings(docker);
  const surroundingsOf = createSurroundings(docker, egress.name, engine);
  const images = new ImageCheck(docker, guardImage);
  const opener = new SandboxOpener({
    docker,
    images,
    name,
    guardImage,
    firewall,
    proxy,
    keys,
    links,
    surroundingsOf,
    egressVolume: egress.name,
    say,
  });
  const own = addingInstallation(installation);
  const tools = { docker, links, opener, own, installation };
  return {
    name,
    nameOf: sandboxName,
    open: async (spec, signal) => opener.open(await withHome(docker, await own(spec)), signal),
    refuseUnfit: (spec) => images.refuseUnfit(spec),
    ...endings({ ...tools, forget: (id) => [proxy, keys].forEach((part) => part.forget(id)) }),
    ...sizes({ ...tools, guardImage }),
    sessions: async () => labelledSessions(docker, await installation()),
    removeUnused: async () => removeLeftOvers(docker, await installation(), proxy, egress.name),
    bases: createBases({
      docker,
      installation,
      open: opener.open.bind(opener),
      drop: links.drop.bind(links),
    }),
    services: createDockerServices({ docker, own, engine, say }),
    setUps: keptSetUps(tools),
    async close() {
      proxy.close("the worker is stopping");
      links.dropAll("the worker is stopping; commands in the sandbox continue");
    },
  };
}

/** Disks grow rarely. Chosen: a container an hour to look. */
const DISK_MS = 3_600_000;

/** What a sandbox takes on the engine's disk, and how large that is. */
const sizes = ({
  docker,
  own,
  guardImage,
}: Pick<KeptOptions, "docker" | "own"> & { readonly guardImage: string }): Required<
  Pick<SandboxHost, "ownBytes" | "diskBytes">
> => ({
  ownBytes: async (sessionId) => writtenBytes(docker, await own({ sessionId })),
  diskBytes: cachedFor(DISK_MS, () => engineDisk(docker, guardImage)),
});

/** Whether a session's sandbox is here, and how it ends: it is removed, or stopped and kept. */
const endings = ({
  docker,
  own,
  opener,
  links,
  forget,
}: Pick<KeptOptions, "docker" | "own" | "opener" | "links"> & {
  readonly forget: (sessionId: string) => void;
}): Required<Pick<SandboxHost, "remove" | "park" | "volume">> => {
  async function removeOf(owner: OwnSession, keeps?: "service-data"): Promise<void> {
    await opener.settled(owner.sessionId);
    const { id, isOthers } = await removeSandbox(docker, await own(owner), keeps);
    if (id !== undefined) links.drop(id, "the sandbox was removed");
    if (!isOthers) forget(owner.sessionId);
  }
  return {
    volume: async (sessionId, { only } = {}) =>
      volumeIdentity(docker, await own(only === "beside" ? besideSession(sessionId) : { sessionId })),
    async remove(sessionId, { keeps, only } = {}) {
      if (only === undefined) await removeOf({ sessionId }, keeps);
      await removeOf(besideSession(sessionId), keeps);
    },
    async park(sessionId) {
      await opener.settled(sessionId);
      const id = await stopSandbox(docker, await own({ sessionId }));
      if (id === undefined) return false;
      links.drop(id, "the sandbox was stopped, and is kept");
      forget(sessionId);
      await removeOf(besideSession(sessionId));
      return true;
    },
  };
};

/** A sandbox on a base has what that base's set-up made in the home folder. */
async function withHome(docker: Dockerode, spec: SandboxSpec): Promise<SandboxSpec> {
  const { base, installation } = spec;
  const home = base === undefined ? undefined : await findHome(docker, base, installation);
  return home === undefined ? spec : { ...spec, keptImage: home.image };
}

const addingInstallation =
  (installation: () => Promise<string>) =>
  async <T extends OwnSession>(owner: T): Promise<T & OwnSession> => ({
    ...owner,
    installation: await installation(),
  });

/** What no sandbox of this installation, or none at all, uses any more. @returns a line for each */
const removeLeftOvers = async (
  docker: Dockerode,
  installation: string,
  proxy: EgressProxy,
  proxyName: string,
) => [
  ...((await proxy.removeUnused()) ? [`removed the egress proxy ${proxyName}`] : []),
  ...(await removeOrphanServices(docker, installation)),
  ...(await removeOldKept(docker)),
  ...(await removeOldBases(docker)),
];

interface KeptOptions {
  readonly docker: Dockerode;
  readonly links: SandboxLinks;
  readonly opener: SandboxOpener;
  /** Adds whose it is. */
  readonly own: <T extends OwnSession>(owner: T) => Promise<T & OwnSession>;
  readonly installation: () => Promise<string>;
}

const keptSetUps = ({ docker, links, opener, own, installation }: KeptOptions): KeptSetUps => ({
  async take(specified, key, { signal, accepts } = {}) {
    const spec = await own(specified);
    const reusable = await findKept(docker, spec, key);
    if (reusable === undefined || (await accepts?.(reusable.commit)) === false) return undefined;
    // Only the container is removed: the files stay on their volume.
    const container = docker.getContainer(sandboxName(spec.sessionId));
    const info = await unless([404], () => container.inspect());
    if (info !== undefined && isOwnedBy(spec, info.Config.Labels)) {
      await unless([404, 409], () => container.remove({ force: true, v: true }));
      links.drop(info.Id, "the sandbox is recreated with the result of an earlier set-up");
    }
    return opener.open({ ...spec, keptImage: reusable.image }, signal);
  },
  keep: async (spec, key, commit) => keepAs(docker, await own(spec), { key, commit }),
  build: async (spec, key, request, signal) =>
    buildImage(docker, await own(spec), { ...request, key }, signal),
  makers: async () => makersOfKept(docker, await installation()),
  forget: async (sessionId) => removeKeptOf(docker, await own({ sessionId })),
});

/** Cached no longer than this: a restarted engine may have other settings. */
const ENGINE_MS = 60_000;

interface EngineFacts {
  readonly DefaultRuntime?: string;
  readonly SecurityOptions?: readonly string[] | null;
}

type ImageFacts = Pick<Surroundings, "imageEnvironment" | "madeFrom" | "image" | "volumes" | "imageLabels">;

type EngineSurroundings = () => Promise<Pick<Surroundings, "defaultRuntime" | "appArmor">>;

/** What a container inherits from its engine: cached. */
function engineSurroundings(docker: Dockerode): EngineSurroundings {
  const engineFacts = cachedFor(ENGINE_MS, () => unless([], () => docker.info() as Promise<EngineFacts>));
  return async () => {
    const facts = await engineFacts();
    return {
      defaultRuntime: facts?.DefaultRuntime ?? "runc",
      appArmor: facts?.SecurityOptions?.some((option) => option.startsWith("name=apparmor")) === true,
    };
  };
}

/**
 * What a container inherits from its engine and its image: read from the engine and cached.
 * @returns a function that gives one container's surroundings; it throws SandboxUnavailable (retryable)
 */
export function createSurroundings(
  docker: Dockerode,
  egressVolume: string,
  engine: EngineSurroundings = engineSurroundings(docker),
): (info: ContainerInspectInfo) => Promise<Surroundings> {
  /** By the image's id, which is a hash of its content. */
  const images = new Map<string, ImageFacts>();

  async function imageFacts(id: string): Promise<ImageFacts> {
    const cached = images.get(id);
    if (cached !== undefined) return cached;
    const image = await unless([404], () => docker.getImage(id).inspect());
    const labels: Record<string, string> = image?.Config.Labels ?? {};
    const facts = {
      imageEnvironment: image?.Config.Env ?? [],
      madeFrom: labels[MADE_FROM_LABEL],
      imageLabels: labels,
      image: image && (image.RepoDigests?.[0] ?? image.Id),
      volumes: imageVolumes(image?.Config.Volumes),
    };
    if (image !== undefined) images.set(id, facts);
    return facts;
  }

  return async (info) => {
    const [facts, image] = await Promise.all([engine(), imageFacts(info.Image)]);
    return { ...facts, ...image, egressVolume };
  };
}
