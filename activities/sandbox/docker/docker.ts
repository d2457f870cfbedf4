/** The Docker adapter of the sandbox port: one container and one volume for each session. */
import type Dockerode from "dockerode";
import { fatal, retryable } from "../../contract/failures.ts";
import { abortable, shareWork, type SharedWork } from "../shared-work.ts";
import { createSupervisorLink } from "./supervisor-link.ts";
import type { SupervisorLink } from "./supervisor-link.ts";
import { statusOf, unless } from "./docker-errors.ts";
import { createDockerSandbox } from "./docker-sandbox.ts";
import { createNetworkGuard, type NetworkGuard } from "./firewall.ts";
import { isolationGaps } from "./isolation-checks.ts";
import { measuredReach } from "./firewall-rules.ts";
import {
  sandboxLabels,
  sandboxName,
  createOptions,
  differences,
  SESSION_LABEL,
  type Surroundings,
} from "./profile.ts";
import { labelledSessions, removeSandbox, volumeIdentity } from "./docker-containers.ts";
import { type SandboxSpec, type Sandbox, type SandboxHost } from "../sandbox.ts";
import { DEFAULT_IMAGE } from "../../config/default-image.ts";
import { SandboxLost } from "../sandbox-lost.ts";
import { createSurroundings } from "./surroundings.ts";

export interface DockerHostOptions {
  readonly docker: Dockerode;
  /** Name of this host, for the ledger and the task queue. */
  readonly name: string;
  /** The operator's image that puts up walls, with python3 and nft; default the one that the set-up makes. */
  readonly guardImage?: string;
  /** Told one line for each thing done. */
  readonly say?: (line: string) => void;
}

/** Container states change under us (another worker, a daemon that has not noticed yet): so often we look again. */
const MAX_ROUNDS = 50;
const ROUND_MS = 100;
/** As Docker's own tools show an id. */
const SHORT_ID = 12;
/** Of the container's init process, where the program it is to run is not there. */
const NOT_FOUND_EXIT_CODE = 127;

export function createDockerHost({
  docker,
  name,
  guardImage = DEFAULT_IMAGE,
  say = () => undefined,
}: DockerHostOptions): SandboxHost {
  const guard = createNetworkGuard(docker, guardImage);
  const surroundingsOf = createSurroundings(docker);
  /** By container id, so that a sandbox made anew gets a way of its own. */
  const links = new Map<string, Way>();
  /** By session and the rest of the spec. */
  const opening = new Map<string, Map<string, SharedWork<Sandbox>>>();

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
        await create(docker, spec, surroundingsOf);
        say(`sandbox: created ${sandboxName(spec.sessionId)} from ${spec.image}`);
        continue;
      }
      assertOurs(found, spec, await surroundingsOf(found));
      if (found.State.Running && !found.State.Paused) return { found, started };
      if (found.State.ExitCode === NOT_FOUND_EXIT_CODE) throw withoutPython(spec, undefined);
      if (found.State.Paused) await unless([404, 409, 500], () => container.unpause());
      else if (found.State.Status === "dead")
        await unless([404, 409], () => container.remove({ force: true }));
      // 304: it runs already; 404 and 409: it is being removed. Each time the next look tells.
      else started = (await unless([304, 404, 409], () => container.start().then(() => true))) === true;
      if (round > 1) await new Promise((resolve) => setTimeout(resolve, ROUND_MS));
    }
    throw retryable(
      "SandboxUnavailable",
      `the sandbox ${sandboxName(spec.sessionId)} does not come up; its files are kept`,
    );
  }

  async function openNow(spec: SandboxSpec, signal: AbortSignal): Promise<Sandbox> {
    if (spec.network !== "none") guard.prepare();
    const { found, started } = await bringUp(spec, signal);
    const id = found.Id;
    const container = found.Name.replace(/^\//, "");
    const volume = (await volumeIdentity(docker, spec.sessionId)) ?? "";
    // What was started anew has lost its rules, whatever it answers.
    const known = started ? undefined : links.get(id);
    const connecting = connect(found, spec, known).catch((error: unknown) => {
      // A way that led to the sandbox before it was restarted.
      if (known === undefined || !(error instanceof SandboxLost)) return endedAtOnce(id, spec, error);
      return connect(found, spec, undefined).catch((again: unknown) => endedAtOnce(id, spec, again));
    });
    const { link, network, ...hello } = await abortable(connecting, signal);
    const { empty, boot, isolation } = hello;
    const identity = { host: name, volume, container: id.slice(0, SHORT_ID), boot };
    const gaps = [
      ...(network.reach === "everything" ? [network.why ?? ""] : []),
      ...(isolation === undefined ? [] : isolationGaps(isolation, spec.runtime)),
    ];
    for (const gap of gaps) say(`sandbox: ${container} is not shut off as it must be: ${gap}`);
    if (gaps.length > 0 && spec.guard !== "best-effort") {
      drop(id, "the sandbox is without its walls");
      if (started) await unless([404, 409], () => docker.getContainer(id).remove({ force: true }));
      throw unguarded(gaps, guardImage);
    }
    return createDockerSandbox({ container, identity, empty, network, gaps }, link);
  }

  async function connect(found: Dockerode.ContainerInspectInfo, spec: SandboxSpec, known: Way | undefined) {
    const id = found.Id;
    const way = known ?? (await wayTo(docker, guard, found, spec));
    links.set(id, way);
    try {
      const [hello, network] = await Promise.all([way.link.connect(), way.network]);
      return { link: way.link, ...hello, network: network(hello.reachable) };
    } catch (error) {
      drop(id, "the sandbox could not be reached");
      throw error;
    }
  }

  /** While a sandbox is opened, its end is no loss yet: the next attempt begins anew, where that can help. */
  async function endedAtOnce(id: string, spec: SandboxSpec, error: unknown): Promise<never> {
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
    // What an opening that was given up has asked the engine for may come yet.
    await Promise.all([...(opening.get(sessionId)?.values() ?? [])].map(({ over }) => over));
    const removed = await removeSandbox(docker, sessionId);
    if (removed !== undefined) drop(removed, "the sandbox was removed");
  }

  function share(spec: SandboxSpec): SharedWork<Sandbox> {
    const ofSession = opening.get(spec.sessionId) ?? new Map<string, SharedWork<Sandbox>>();
    const key = JSON.stringify(spec);
    const shared = ofSession.get(key);
    if (shared?.canJoin === true) return shared;
    const mine = shareWork((signal) => openNow(spec, signal));
    opening.set(spec.sessionId, ofSession.set(key, mine));
    void mine.over.then(() => {
      if (ofSession.get(key) === mine) ofSession.delete(key);
      if (ofSession.size === 0 && opening.get(spec.sessionId) === ofSession) opening.delete(spec.sessionId);
    });
    return mine;
  }

  return {
    name,
    async open(spec, signal) {
      signal?.throwIfAborted();
      return await share(spec).join(signal);
    },
    remove,
    sessions: () => labelledSessions(docker),
    volume: (sessionId) => volumeIdentity(docker, sessionId),
    close() {
      for (const id of links.keys()) drop(id, "the worker ends; what runs in the sandbox goes on");
      return Promise.resolve();
    },
  };
}

function withoutPython({ image }: SandboxSpec, cause: unknown): Error {
  return fatal(
    "SandboxRefused",
    `the image ${image} has no python3, which the sandbox's supervisor runs on; nothing was run. Add python3 to the image, ` +
      "or take one that has it: docs/sandbox.md says what an image needs",
    cause,
  );
}

/** A stream to one life of a sandbox, with what is known of its network once its rules are in force. */
interface Way {
  readonly link: SupervisorLink;
  readonly network: Promise<(reachableFromInside: readonly string[]) => Sandbox["network"]>;
}

/** The rules are put in force while the way is made. */
async function wayTo(
  docker: Dockerode,
  guard: NetworkGuard,
  found: Dockerode.ContainerInspectInfo,
  spec: SandboxSpec,
): Promise<Way> {
  const link = (probe: readonly string[], ready: Promise<unknown>) =>
    createSupervisorLink(docker, found.Id, { disk: spec.disk, probe, ready });
  if (spec.network === "none") {
    const none = Promise.resolve(() => ({ reach: "none" }) as const);
    return { link: link([], none), network: none };
  }
  const rules = await guard.rules(found, spec);
  const raised = guard.raise(found, spec, rules);
  // From inside too: a runtime may have a network of its own, in which the namespace's rules do not hold.
  const network = raised.then(
    ({ troubles, reachable }) =>
      (fromInside: readonly string[]) =>
        measuredReach(rules, [...new Set([...reachable, ...fromInside])], [...rules.troubles, ...troubles]),
  );
  return {
    link: link(
      rules.probe,
      raised.catch(() => undefined),
    ),
    network,
  };
}

function unguarded(gaps: readonly string[], guardImage: string): Error {
  return fatal(
    "SandboxUnguarded",
    `The sandbox is not shut off as it must be, so nothing was run in it: ${gaps.join("; ")}. Its files are kept. ` +
      `The network's rules are loaded by nft from the image ${guardImage} (LONGHAUL_GUARD_IMAGE); seccomp and capabilities are ` +
      "the Docker engine's. Correct that, or choose sandbox.network: none (for the network), or sandbox.guard: best-effort",
  );
}

async function create(
  docker: Dockerode,
  spec: SandboxSpec,
  surroundingsOf: ReturnType<typeof createSurroundings>,
): Promise<void> {
  const now = new Date();
  const volume = sandboxName(spec.sessionId);
  // Gives the one that is there where there is one.
  await unless([], () => docker.createVolume({ Name: volume, Labels: sandboxLabels(spec.sessionId, now) }));
  const made = await unless([404], () => docker.getVolume(volume).inspect());
  const labels: Record<string, string> = made?.Labels ?? {};
  if (made !== undefined && labels[SESSION_LABEL] !== spec.sessionId) {
    throw fatal(
      "SandboxRefused",
      `there is a volume ${volume} that is not this session's; rename or remove it`,
    );
  }
  const container = await unless([409], () => createContainer(docker, spec, now));
  // 409: another worker was quicker; the next look adopts its sandbox.
  if (container === undefined) return;
  const found = await unless([404], () => container.inspect());
  const differing = found === undefined ? [] : differences(found, spec, await surroundingsOf(found));
  if (differing.length === 0) return;
  await unless([404, 409], () => container.remove({ force: true }));
  throw refused(spec, differing);
}

async function createContainer(
  docker: Dockerode,
  spec: SandboxSpec,
  now: Date,
): Promise<Dockerode.Container> {
  try {
    return await docker.createContainer(createOptions(spec, now));
  } catch (error) {
    if (statusOf(error) !== 404) throw error;
    throw fatal(
      "ImageMissing",
      `there is no sandbox image ${spec.image} on this Docker host; nothing was run; build it (npm start does) or set SANDBOX_IMAGE`,
      error,
    );
  }
}

function assertOurs(found: Dockerode.ContainerInspectInfo, spec: SandboxSpec, around: Surroundings): void {
  const differing = differences(found, spec, around);
  if (differing.length > 0) throw refused(spec, differing);
}

function refused(spec: SandboxSpec, differing: readonly string[]): Error {
  return fatal(
    "SandboxRefused",
    `the container ${sandboxName(spec.sessionId)} is not the sandbox it must be, so nothing is run in it: ${differing.join("; ")}. ` +
      "Its files are kept on the volume of that name; remove the container to have it made anew",
  );
}
