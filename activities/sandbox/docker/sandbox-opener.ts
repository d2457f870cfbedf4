/** Opens sandboxes on one Docker host: brings the container up, connects to it, and refuses it if it is not isolated as required. */
import { randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type { ContainerInspectInfo } from "dockerode";
import type Dockerode from "dockerode";
import { retryable } from "../../contract/failures.ts";
import { hasEgress, type SandboxSpec } from "../sandbox-host.ts";
import { type Sandbox, SandboxLost } from "../sandbox.ts";
import { abortable, shareWork, type SharedWork } from "../shared-work.ts";
import { setUpIn } from "./base-homes.ts";
import { isBaseMade } from "./bases.ts";
import { ownVolume, removeVolume, volumeIdentity, volumeLabels } from "./docker-containers.ts";
import {
  cannotStart,
  unguarded,
  unless,
  withoutGuard,
  imageMissing,
  impossible,
  statusOf,
  unlikeProfile,
} from "./docker-errors.ts";
import { createDockerSandbox } from "./docker-sandbox.ts";
import { type EgressProxy, EGRESS_LABELS } from "./egress-proxy.ts";
import type { Firewall } from "./firewall.ts";
import { prepareLayers } from "./layers.ts";
import type { PreparedKeys, SessionKeys } from "./session-keys.ts";
import { isolationGaps, differences, type Surroundings } from "./profile-differences.ts";
import {
  EGRESS_TOKEN_LABEL,
  SHORT_ID,
  CACHE_LABEL,
  cacheName,
  createOptions,
  isMountedOtherwise,
  isOwnedBy,
  type LayerPlaces,
  layersName,
  ownerLabels,
  PROFILE_LABEL,
  sandboxLabels,
  sandboxName,
  workspaceVolume,
} from "./profile.ts";
import type { SandboxLinks } from "./sandbox-links.ts";
import type { ImageCheck } from "./unfit-image.ts";

interface OpenerOptions extends Omit<ContainerHost, "onRemoved"> {
  /** Name of the host. */
  readonly name: string;
  /** The image that runs the firewall. */
  readonly guardImage: string;
  readonly firewall: Firewall;
  readonly proxy: EgressProxy;
  readonly keys: SessionKeys;
  readonly links: SandboxLinks;
}

interface Opening {
  readonly sessionId: string;
  readonly work: SharedWork<Sandbox>;
}

export class SandboxOpener {
  readonly #options: OpenerOptions;
  readonly #host: ContainerHost;
  /** Openings in progress, by the whole spec as text. */
  readonly #openings = new Map<string, Opening>();

  constructor(options: OpenerOptions) {
    this.#options = options;
    this.#host = { ...options, onRemoved: (id, why) => options.links.drop(id, why) };
  }

  /** Concurrent callers with the same spec share one opening, which is aborted when all of them have been. */
  async open(spec: SandboxSpec, signal?: AbortSignal): Promise<Sandbox> {
    signal?.throwIfAborted();
    return await this.#share(spec).join(signal);
  }

  /** Resolves when no opening of this session is in progress: an aborted one may still have requests at the engine. */
  async settled(sessionId: string): Promise<void> {
    const ofSession = [...this.#openings.values()].filter((opening) => opening.sessionId === sessionId);
    await Promise.all(ofSession.map(({ work }) => work.over));
  }

  #share(spec: SandboxSpec): SharedWork<Sandbox> {
    const key = JSON.stringify(spec);
    const shared = this.#openings.get(key)?.work;
    if (shared?.canJoin === true) return shared;
    const work = shareWork((signal) => this.#openNow(spec, signal));
    const opening = { sessionId: spec.sessionId, work };
    this.#openings.set(key, opening);
    void work.over.then(() => {
      if (this.#openings.get(key) === opening) this.#openings.delete(key);
    });
    return work;
  }

  async #openNow(named: SandboxSpec, signal: AbortSignal): Promise<Sandbox> {
    const { docker, name, firewall, surroundingsOf, say } = this.#options;
    const keys = await abortable(this.#options.keys.prepare(named), signal);
    const { spec } = keys;
    if (spec.network !== "none") firewall.prefetch(spec);
    const running = await bringUp(this.#host, spec, signal);
    const { found } = running;
    const container = found.Name.replace(/^\//, "");
    const volume = (await volumeIdentity(docker, spec)) ?? "";
    const connected = await abortable(this.#connect(running, spec), signal);
    const { link, network, empty, boot, isolation } = connected;
    const { image, imageLabels = {} } = await surroundingsOf(found);
    const { base } = spec;
    const baseSetUp = setUpIn(imageLabels, base);
    const identity = { host: name, volume, container: found.Id.slice(0, SHORT_ID), boot, image, base };
    const gaps = [
      ...(network.reach === "everything" ? [network.why ?? ""] : []),
      ...isolationGaps(isolation, spec.runtime),
    ];
    for (const gap of gaps) say(`sandbox: ${container} is not isolated as required: ${gap}`);
    if (gaps.length > 0 && spec.guard !== "best-effort") await this.#refuse(running, gaps);
    const facts = { container, identity, baseSetUp, empty, network, gaps, ...this.#waysOut(found, keys) };
    return createDockerSandbox(facts, link);
  }

  async #connect({ found, started }: RunningContainer, spec: SandboxSpec) {
    try {
      return await this.#options.links.connect(found, spec, started);
    } catch (error) {
      if (!(error instanceof SandboxLost)) throw error;
      return this.#failOpening(found.Id, spec, error);
    }
  }

  /** A sandbox that ends while it is opened is not lost yet: the next attempt opens it again, if that can help. */
  async #failOpening(containerId: string, spec: SandboxSpec, error: SandboxLost): Promise<never> {
    const info = await unless([404], () => this.#options.docker.getContainer(containerId).inspect());
    if (info?.State.ExitCode === NOT_FOUND_EXIT_CODE)
      throw await cannotStart(this.#options.docker, spec, error);
    const message = `the sandbox ended while it was opened: ${error.message}`;
    throw retryable("SandboxUnavailable", message, { cause: error });
  }

  /** Leaves the sandbox as it was found. @throws SandboxUnguarded or ImageMissing (fatal) */
  async #refuse({ found, started }: RunningContainer, gaps: readonly string[]): Promise<never> {
    const { docker, guardImage, links } = this.#options;
    links.drop(found.Id, "the sandbox is not isolated as required");
    if (started)
      await unless([404, 409], () => docker.getContainer(found.Id).remove({ force: true, v: true }));
    const image = await unless([404], () => docker.getImage(guardImage).inspect());
    throw image === undefined ? withoutGuard(guardImage) : unguarded(gaps, guardImage);
  }

  /** What the port offers for a sandbox that can reach something. */
  #waysOut(
    info: ContainerInspectInfo,
    keys: PreparedKeys,
  ): Pick<Sandbox, "egress" | "refused" | "lackingKeys"> {
    const { firewall, proxy } = this.#options;
    const { spec, lacking } = keys;
    const lackingKeys = lacking.length === 0 ? {} : { lackingKeys: lacking };
    if (spec.network === "none") return lackingKeys;
    const token = info.Config.Labels[EGRESS_TOKEN_LABEL] ?? "";
    const egress = hasEgress(spec) ? { egress: proxy.of(keys, token) } : {};
    if (spec.network === "listed") return { ...egress, ...lackingKeys };
    return { ...egress, ...lackingKeys, refused: (withinMs) => firewall.refused(info, spec, withinMs) };
  }
}

/** Container states change at any time (another worker, a daemon that lags behind): how often we look again. */
const MAX_ROUNDS = 50;
const ROUND_MS = 100;
/** The container's exit code if its program does not exist. */
const NOT_FOUND_EXIT_CODE = 127;

export interface ContainerHost {
  readonly docker: Dockerode;
  readonly surroundingsOf: (info: ContainerInspectInfo) => Promise<Surroundings>;
  /** The volume with the egress proxy's socket. */
  readonly egressVolume: string;
  readonly images: ImageCheck;
  readonly say: (line: string) => void;
  /** Called when a container was removed to be created again. */
  readonly onRemoved: (containerId: string, why: string) => void;
}

export interface RunningContainer {
  readonly found: ContainerInspectInfo;
  /** Whether it was not running before. */
  readonly started: boolean;
}

/** @throws SandboxRefused (fatal), ImageMissing (fatal), SandboxUnavailable (retryable), the signal's reason */
async function bringUp(
  host: ContainerHost,
  spec: SandboxSpec,
  signal: AbortSignal,
): Promise<RunningContainer> {
  const { docker, surroundingsOf, say } = host;
  const name = sandboxName(spec.sessionId);
  const container = docker.getContainer(name);
  let wasStarted = false;
  for (let round = 0; round < MAX_ROUNDS; round++) {
    signal.throwIfAborted();
    // Looked for, made, started: what is not there then is in another worker's hands, which may hold the name and not show it yet.
    if (round > 2) await sleep(ROUND_MS);
    const info = await unless([404], () => container.inspect());
    if (info === undefined) {
      await create(host, spec);
      say(`sandbox: created ${name} from ${spec.image}`);
      continue;
    }
    if (isMountedOtherwise(info, spec)) {
      await removeOtherwiseMounted(host, info, spec);
      continue;
    }
    const around = await surroundingsOf(info);
    if (isOlder(info, spec, around)) {
      await unless([404, 409], () => container.remove({ force: true, v: true }));
      host.onRemoved(info.Id, "the sandbox is made again: another version of Longhaul had made it");
      continue;
    }
    assertOurs(info, spec, around);
    if (info.State.Running && !info.State.Paused) return { found: info, started: wasStarted };
    if (info.State.ExitCode === NOT_FOUND_EXIT_CODE) throw await cannotStart(docker, spec, undefined);
    if (info.State.Paused) await unless([404, 409, 500], () => container.unpause());
    else if (info.State.Status === "dead")
      await unless([404, 409], () => container.remove({ force: true, v: true }));
    // 304: it runs already; 404 and 409: it is being removed. The next round shows which.
    else wasStarted = (await unless([304, 404, 409], () => container.start().then(() => true))) === true;
  }
  throw retryable("SandboxUnavailable", `the sandbox ${name} does not start; its files are kept`);
}

/** Its files stay on their volume. */
async function removeOtherwiseMounted(
  { docker, surroundingsOf, onRemoved }: ContainerHost,
  info: ContainerInspectInfo,
  spec: SandboxSpec,
): Promise<void> {
  const { readOnly, ...writable } = spec;
  assertOurs(info, readOnly ? writable : { ...spec, readOnly: true }, await surroundingsOf(info));
  await unless([404, 409], () =>
    docker.getContainer(sandboxName(spec.sessionId)).remove({ force: true, v: true }),
  );
  onRemoved(info.Id, "the sandbox is recreated with its workspace mounted differently");
}

async function create(
  { docker, surroundingsOf, egressVolume, images }: ContainerHost,
  spec: SandboxSpec,
): Promise<void> {
  await images.refuseUnfit(spec);
  const now = new Date();
  const name = sandboxName(spec.sessionId);
  await ownVolume(docker, name, ownerLabels(spec), { labels: sandboxLabels(spec, now) });
  if (spec.cache !== undefined) await ownVolume(docker, cacheName(spec.cache), { [CACHE_LABEL]: spec.cache });
  // The proxy may be started after it.
  if (hasEgress(spec)) await ownVolume(docker, egressVolume, EGRESS_LABELS);
  const egress = { volume: egressVolume, token: randomBytes(16).toString("hex") };
  const layers = await layersOnBase(docker, spec, now);
  const options = createOptions(spec, now, { egress: hasEgress(spec) ? egress : undefined, layers });
  const container = await unless([409], () => createContainer(docker, spec, options));
  // 409: another worker was faster; the next round adopts its sandbox.
  if (container === undefined) return;
  const info = await unless([404], () => container.inspect());
  const differing = info === undefined ? [] : differences(info, spec, await surroundingsOf(info));
  if (differing.length === 0) return;
  await unless([404, 409], () => container.remove({ force: true, v: true }));
  throw unlikeProfile(name, differing);
}

/** Layers on a base that stays: from when they are there, it is not removed. @throws SandboxUnavailable (retryable) if it just was */
async function layersOnBase(
  docker: Dockerode,
  spec: SandboxSpec,
  now: Date,
): Promise<LayerPlaces | undefined> {
  const { base, installation = "", sessionId } = spec;
  const stoodBefore = (await volumeLabels(docker, layersName(sessionId))) !== undefined;
  const layers = await prepareLayers(docker, spec, now);
  if (base === undefined || stoodBefore || (await isBaseMade(docker, base, installation))) return layers;
  await removeVolume(docker, spec, layersName(sessionId));
  throw retryable("SandboxUnavailable", "the base of the session's files was removed; it is made again");
}

async function createContainer(
  docker: Dockerode,
  spec: SandboxSpec,
  options: Dockerode.ContainerCreateOptions,
): Promise<Dockerode.Container> {
  try {
    return await docker.createContainer(options);
  } catch (error) {
    if (statusOf(error) === 400) throw impossible(error);
    if (statusOf(error) !== 404) throw error;
    throw imageMissing(spec, error);
  }
}

/**
 * Whether a container that differs is proved ours (its session, and our labelled volume as its workspace) and was made with another
 * version's profile: its volume stays, and it is made again.
 */
function isOlder(info: ContainerInspectInfo, spec: SandboxSpec, around: Surroundings): boolean {
  const { [PROFILE_LABEL]: profile } = info.Config.Labels;
  const isOfSession =
    isOwnedBy(spec, info.Config.Labels) &&
    info.Mounts.some(
      ({ Type, Name, Destination }) =>
        Type === "volume" && Name === workspaceVolume(spec) && Destination === "/workspace",
    );
  return (
    isOfSession &&
    profile !== createOptions(spec, new Date()).Labels?.[PROFILE_LABEL] &&
    differences(info, spec, around).length > 0
  );
}

function assertOurs(info: ContainerInspectInfo, spec: SandboxSpec, around: Surroundings): void {
  const differing = differences(info, spec, around);
  if (differing.length > 0) throw unlikeProfile(sandboxName(spec.sessionId), differing);
}
