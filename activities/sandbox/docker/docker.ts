/** The Docker adapter of the sandbox port: one container and one volume for each session. */
import { randomBytes } from "node:crypto";
import type Dockerode from "dockerode";
import { fatal, retryable } from "../../contract/failures.ts";
import { abortable, shareWork, type SharedWork } from "../shared-work.ts";
import { buildImage } from "./build-image.ts";
import {
  impossible,
  statusOf,
  unguarded,
  unless,
  unlikeProfile,
  withoutGuard,
  withoutPython,
} from "./docker-errors.ts";
import { createDockerSandbox } from "./docker-sandbox.ts";
import { EGRESS_TOKEN_LABEL } from "./egress-place.ts";
import { createEgressProxy } from "./egress-proxy.ts";
import { createFirewall } from "./firewall.ts";
import { isolationGaps } from "./isolation-checks.ts";
import { sandboxLabels, sandboxName, createOptions, isMountedOtherwise, SESSION_LABEL } from "./profile.ts";
import { differences, type Surroundings } from "./profile-differences.ts";
import { findKept, keepAs, removeOldKept } from "./set-up-images.ts";
import { linkTo, type SandboxLink } from "./sandbox-link.ts";
import { labelledSessions, removeSandbox, volumeIdentity } from "./docker-containers.ts";
import type { Sandbox } from "../sandbox.ts";
import type { SandboxHost } from "../sandbox-host.ts";
import type { SandboxSpec } from "../spec.ts";
import { DEFAULT_IMAGE } from "../../config/default-image.ts";
import { SandboxLost } from "../sandbox-lost.ts";
import { createSurroundings } from "./surroundings.ts";

export interface DockerHostOptions {
  readonly docker: Dockerode;
  /** Name of this host, for the ledger and the task queue. */
  readonly name: string;
  /** The operator's image that runs the firewall, with python3 and nft; default the one that the set-up builds. */
  readonly guardImage?: string;
  /** The proxy of `network: listed`: its container, and further `name:address` for its look-ups. */
  readonly egress?: { readonly name: string; readonly hosts: readonly string[] };
  /** Called with one line for each action. */
  readonly say?: (line: string) => void;
}

/** Container states change at any time (another worker, a daemon that lags behind): how often we look again. */
const MAX_ROUNDS = 50;
const ROUND_MS = 100;
/** Docker's own tools show this many characters of an id. */
const SHORT_ID = 12;
/** The container's exit code if its program does not exist. */
const NOT_FOUND_EXIT_CODE = 127;
/** One proxy per host, shared by the workers of all installations. */
const EGRESS = { name: "longhaul-egress", hosts: [] };

export function createDockerHost({
  docker,
  name,
  guardImage = DEFAULT_IMAGE,
  egress = EGRESS,
  say = () => undefined,
}: DockerHostOptions): SandboxHost {
  const firewall = createFirewall(docker, guardImage);
  const proxy = createEgressProxy({ docker, firewall, image: guardImage, say, ...egress });
  const surroundingsOf = createSurroundings(docker, egress.name);
  /** By container id, so that a new sandbox of the same name gets its own link. */
  const links = new Map<string, SandboxLink>();
  /** Openings in progress, by the whole spec as text. */
  const opening = new Map<string, { readonly sessionId: string; readonly work: SharedWork<Sandbox> }>();

  async function bringUp(
    spec: SandboxSpec,
    signal: AbortSignal,
  ): Promise<{ found: Dockerode.ContainerInspectInfo; started: boolean }> {
    const container = docker.getContainer(sandboxName(spec.sessionId));
    let started = false;
    for (let round = 0; round < MAX_ROUNDS; round++) {
      signal.throwIfAborted();
      const found = await unless([404], () => container.inspect());
      if (found === undefined) {
        await create(docker, spec, surroundingsOf, egress.name);
        say(`sandbox: created ${sandboxName(spec.sessionId)} from ${spec.image}`);
        continue;
      }
      if (isMountedOtherwise(found, spec)) {
        const { readOnly, ...writable } = spec;
        assertOurs(found, readOnly ? writable : { ...spec, readOnly: true }, await surroundingsOf(found));
        await unless([404, 409], () => container.remove({ force: true }));
        drop(found.Id, "the sandbox is recreated with its workspace mounted differently");
        continue;
      }
      assertOurs(found, spec, await surroundingsOf(found));
      if (found.State.Running && !found.State.Paused) return { found, started };
      if (found.State.ExitCode === NOT_FOUND_EXIT_CODE) throw withoutPython(spec, undefined);
      if (found.State.Paused) await unless([404, 409, 500], () => container.unpause());
      else if (found.State.Status === "dead")
        await unless([404, 409], () => container.remove({ force: true }));
      // 304: it runs already; 404 and 409: it is being removed. The next round shows which.
      else started = (await unless([304, 404, 409], () => container.start().then(() => true))) === true;
      if (round > 1) await new Promise((resolve) => setTimeout(resolve, ROUND_MS));
    }
    throw retryable(
      "SandboxUnavailable",
      `the sandbox ${sandboxName(spec.sessionId)} does not start; its files are kept`,
    );
  }

  async function openNow(spec: SandboxSpec, signal: AbortSignal): Promise<Sandbox> {
    if (spec.network !== "none") firewall.prefetch(spec);
    const { found, started } = await bringUp(spec, signal);
    const id = found.Id;
    const container = found.Name.replace(/^\//, "");
    const volume = (await volumeIdentity(docker, spec.sessionId)) ?? "";
    // A container that was started again has lost its network rules.
    const known = started ? undefined : links.get(id);
    const connecting = connect(found, spec, known).catch((error: unknown) => {
      // The known link may lead to the sandbox as it was before a restart.
      if (known === undefined || !(error instanceof SandboxLost)) return endedWhileOpening(id, spec, error);
      return connect(found, spec, undefined).catch((again: unknown) => endedWhileOpening(id, spec, again));
    });
    const { link, network, empty, boot, isolation } = await abortable(connecting, signal);
    const { image } = await surroundingsOf(found);
    const identity = { host: name, volume, container: id.slice(0, SHORT_ID), boot, image };
    const gaps = [
      ...(network.reach === "everything" ? [network.why ?? ""] : []),
      ...(isolation === undefined ? [] : isolationGaps(isolation, spec.runtime)),
    ];
    for (const gap of gaps) say(`sandbox: ${container} is not isolated as required: ${gap}`);
    if (gaps.length > 0 && spec.guard !== "best-effort") {
      drop(id, "the sandbox is not isolated as required");
      if (started) await unless([404, 409], () => docker.getContainer(id).remove({ force: true }));
      throw (await isImageMissing(docker, guardImage))
        ? withoutGuard(guardImage)
        : unguarded(gaps, guardImage);
    }
    const facts = { container, identity, empty, network, gaps };
    if (spec.network === "none") return createDockerSandbox(facts, link);
    const refused = (withinMs: number) => firewall.refused(found, spec, withinMs);
    if (spec.network !== "listed") return createDockerSandbox({ ...facts, refused }, link);
    const token = found.Config.Labels[EGRESS_TOKEN_LABEL] ?? "";
    return createDockerSandbox({ ...facts, egress: proxy.of(spec, token) }, link);
  }

  async function connect(
    found: Dockerode.ContainerInspectInfo,
    spec: SandboxSpec,
    known: SandboxLink | undefined,
  ) {
    const id = found.Id;
    const opened = known ?? (await linkTo(docker, { firewall, proxy }, found, spec));
    links.set(id, opened);
    try {
      const [handshake, network] = await Promise.all([opened.link.connect(), opened.network]);
      return { link: opened.link, ...handshake, network: network(handshake.reachable) };
    } catch (error) {
      drop(id, "the sandbox could not be reached");
      throw error;
    }
  }

  /** A sandbox that ends while it is opened is not lost yet: the next attempt opens it again, if that can help. */
  async function endedWhileOpening(id: string, spec: SandboxSpec, error: unknown): Promise<never> {
    if (!(error instanceof SandboxLost)) throw error;
    const found = await unless([404], () => docker.getContainer(id).inspect());
    if (found?.State.ExitCode === NOT_FOUND_EXIT_CODE) throw withoutPython(spec, error);
    const message = `the sandbox ended while it was opened: ${error.message}`;
    throw retryable("SandboxUnavailable", message, { cause: error });
  }

  function drop(id: string, why: string): void {
    links.get(id)?.link.close(why);
    links.delete(id);
  }

  async function remove(sessionId: string): Promise<void> {
    // An aborted opening may still have requests in progress at the engine.
    const own = [...opening.values()].filter((each) => each.sessionId === sessionId);
    await Promise.all(own.map(({ work }) => work.over));
    const removed = await removeSandbox(docker, sessionId);
    if (removed !== undefined) drop(removed, "the sandbox was removed");
    proxy.forget(sessionId);
  }

  function share(spec: SandboxSpec): SharedWork<Sandbox> {
    const key = JSON.stringify(spec);
    const shared = opening.get(key)?.work;
    if (shared?.canJoin === true) return shared;
    const work = shareWork((signal) => openNow(spec, signal));
    const mine = { sessionId: spec.sessionId, work };
    opening.set(key, mine);
    void work.over.then(() => {
      if (opening.get(key) === mine) opening.delete(key);
    });
    return work;
  }

  return {
    name,
    async open(spec, signal) {
      signal?.throwIfAborted();
      return await share(spec).join(signal);
    },
    remove,
    sessions: () => labelledSessions(docker),
    removeUnused: async () => [
      ...((await proxy.removeUnused()) ? [`removed the egress proxy ${egress.name}`] : []),
      ...(await removeOldKept(docker)),
    ],
    setUps: {
      async take(spec, key, signal) {
        const keptImage = await findKept(docker, spec, key);
        if (keptImage === undefined) return undefined;
        // Only the container is removed: the files stay on their volume.
        const container = docker.getContainer(sandboxName(spec.sessionId));
        const found = await unless([404], () => container.inspect());
        await unless([404, 409], () => container.remove({ force: true }));
        if (found !== undefined)
          drop(found.Id, "the sandbox is recreated with the result of an earlier set-up");
        return share({ ...spec, keptImage }).join(signal);
      },
      keep: (spec, key) => keepAs(docker, spec, key),
      build: (spec, key, order, signal) => buildImage(docker, spec, { ...order, key }, signal),
    },
    volume: (sessionId) => volumeIdentity(docker, sessionId),
    close() {
      proxy.close("the worker is stopping");
      for (const id of links.keys()) drop(id, "the worker is stopping; commands in the sandbox continue");
      return Promise.resolve();
    },
  };
}

const isImageMissing = async (docker: Dockerode, image: string): Promise<boolean> =>
  (await unless([404], () => docker.getImage(image).inspect())) === undefined;

async function create(
  docker: Dockerode,
  spec: SandboxSpec,
  surroundingsOf: ReturnType<typeof createSurroundings>,
  egressVolume: string,
): Promise<void> {
  const now = new Date();
  const volume = sandboxName(spec.sessionId);
  // Returns the existing one if there is one.
  await unless([], () => docker.createVolume({ Name: volume, Labels: sandboxLabels(spec.sessionId, now) }));
  const made = await unless([404], () => docker.getVolume(volume).inspect());
  const labels: Record<string, string> = made?.Labels ?? {};
  if (made !== undefined && labels[SESSION_LABEL] !== spec.sessionId) {
    throw fatal(
      "SandboxRefused",
      `the volume ${volume} belongs to another session or program; rename or remove it`,
    );
  }
  const egress = { volume: egressVolume, token: randomBytes(16).toString("hex") };
  const options = createOptions(spec, now, spec.network === "listed" ? egress : undefined);
  const container = await unless([409], () => createContainer(docker, spec, options));
  // 409: another worker was faster; the next round adopts its sandbox.
  if (container === undefined) return;
  const found = await unless([404], () => container.inspect());
  const differing = found === undefined ? [] : differences(found, spec, await surroundingsOf(found));
  if (differing.length === 0) return;
  await unless([404, 409], () => container.remove({ force: true }));
  throw unlikeProfile(sandboxName(spec.sessionId), differing);
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
    throw fatal(
      "ImageMissing",
      `the sandbox image ${spec.image} does not exist on this Docker host; nothing was run; build it (npm start does) or set SANDBOX_IMAGE`,
      error,
    );
  }
}

function assertOurs(found: Dockerode.ContainerInspectInfo, spec: SandboxSpec, around: Surroundings): void {
  const differing = differences(found, spec, around);
  if (differing.length > 0) throw unlikeProfile(sandboxName(spec.sessionId), differing);
}
