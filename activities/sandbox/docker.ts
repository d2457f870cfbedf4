/** The Docker adapter of the sandbox port: one container and one volume for each session. */
import type Dockerode from "dockerode";
import { fatal, retryable } from "../failures.ts";
import { createBoxLink } from "./box-link.ts";
import type { BoxLink } from "./box-link.ts";
import { statusOf, unless } from "./docker-errors.ts";
import { createDockerSandbox } from "./docker-sandbox.ts";
import { rulesFor } from "./network-guard.ts";
import { boxLabels, boxName, createOptions, differences, SESSION_LABEL } from "./profile.ts";
import { labelledSessions, removeBox, volumeIdentity } from "./docker-boxes.ts";
import type { BoxSpec, Sandbox, SandboxHost } from "./sandbox.ts";
import { SandboxLost } from "./sandbox-lost.ts";

export interface DockerHostOptions {
  readonly docker: Dockerode;
  /** Name of this host, for the ledger and the task queue. */
  readonly name: string;
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

export function createDockerHost({ docker, name, say = () => undefined }: DockerHostOptions): SandboxHost {
  /** By container id, so that a box made anew gets a way of its own. */
  const links = new Map<string, BoxLink>();
  const opening = new Map<string, Promise<Sandbox>>();

  async function bringUp(
    spec: BoxSpec,
    signal: AbortSignal | undefined,
  ): Promise<{ found: Dockerode.ContainerInspectInfo; started: boolean }> {
    const container = docker.getContainer(boxName(spec.sessionId));
    let started = false;
    for (let round = 0; round < MAX_ROUNDS; round++) {
      signal?.throwIfAborted();
      const found = await unless([404], () => container.inspect());
      if (found === undefined) {
        await create(docker, spec);
        say(`sandbox: created ${boxName(spec.sessionId)} from ${spec.image}`);
        continue;
      }
      assertOurs(found, spec);
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
      `the box ${boxName(spec.sessionId)} does not come up; its files are kept`,
    );
  }

  async function openNow(spec: BoxSpec, signal: AbortSignal | undefined): Promise<Sandbox> {
    const { found, started } = await bringUp(spec, signal);
    const id = found.Id;
    const container = found.Name.replace(/^\//, "");
    const volume = (await volumeIdentity(docker, spec.sessionId)) ?? "";
    const known = links.get(id);
    const { link, empty, boot, leaks } = await connect(found, spec, known, started).catch(
      (error: unknown) => {
        // A way that led to the box before it was restarted.
        if (known === undefined || !(error instanceof SandboxLost)) return endedAtOnce(id, spec, error);
        return connect(found, spec, undefined, true).catch((again: unknown) => endedAtOnce(id, spec, again));
      },
    );
    const identity = { host: name, volume, container: id.slice(0, SHORT_ID), boot };
    const network = networkOf(spec, leaks);
    if (network.why !== undefined)
      say(`sandbox: ${container} is not shut off from private addresses: ${network.why}`);
    return createDockerSandbox({ container, identity, empty, network }, link);
  }

  async function connect(
    found: Dockerode.ContainerInspectInfo,
    spec: BoxSpec,
    known: BoxLink | undefined,
    started: boolean,
  ) {
    const id = found.Id;
    const link = known ?? createBoxLink(docker, id, await rulesFor(docker, found, spec, started));
    links.set(id, link);
    try {
      return { link, ...(await link.connect()) };
    } catch (error) {
      drop(id);
      throw error;
    }
  }

  /** While a box is opened, its end is no loss yet: the next attempt begins anew, where that can help. */
  async function endedAtOnce(id: string, spec: BoxSpec, error: unknown): Promise<never> {
    if (!(error instanceof SandboxLost)) throw error;
    const found = await unless([404], () => docker.getContainer(id).inspect());
    if (found?.State.ExitCode === NOT_FOUND_EXIT_CODE) throw withoutPython(spec, error);
    const message = `the box ended while it was opened: ${error.message}`;
    throw retryable("SandboxUnavailable", message, { cause: error });
  }

  function drop(id: string): void {
    links.get(id)?.close();
    links.delete(id);
  }

  async function remove(sessionId: string): Promise<void> {
    const removed = await removeBox(docker, sessionId);
    if (removed !== undefined) drop(removed);
  }

  return {
    name,
    async open(spec, signal) {
      signal?.throwIfAborted();
      const key = JSON.stringify(spec);
      let mine = opening.get(key);
      if (mine === undefined) {
        // Not under the first caller's signal: a second one waits for the same box.
        mine = openNow(spec, undefined).finally(() => opening.delete(key));
        opening.set(key, mine);
      }
      return await abortable(mine, signal);
    },
    remove,
    sessions: () => labelledSessions(docker),
    volume: (sessionId) => volumeIdentity(docker, sessionId),
    close() {
      for (const id of links.keys()) drop(id);
      return Promise.resolve();
    },
  };
}

function withoutPython({ image }: BoxSpec, cause: unknown): Error {
  return fatal(
    "SandboxRefused",
    `the image ${image} has no python3, which the sandbox's supervisor runs on; nothing was run. Add python3 to the image, ` +
      "or take one that has it: README, Sandbox, says what an image needs",
    cause,
  );
}

function networkOf(spec: BoxSpec, leaks: readonly string[]): Sandbox["network"] {
  if (spec.network === "none") return { reach: "none" };
  return leaks.length === 0 ? { reach: "internet" } : { reach: "everything", why: leaks.join("; ") };
}

async function create(docker: Dockerode, spec: BoxSpec): Promise<void> {
  const now = new Date();
  const volume = boxName(spec.sessionId);
  // Gives the one that is there where there is one.
  await unless([], () => docker.createVolume({ Name: volume, Labels: boxLabels(spec.sessionId, now) }));
  const made = await unless([404], () => docker.getVolume(volume).inspect());
  const labels: Record<string, string> = made?.Labels ?? {};
  if (made !== undefined && labels[SESSION_LABEL] !== spec.sessionId) {
    throw fatal(
      "SandboxRefused",
      `there is a volume ${volume} that is not this session's; rename or remove it`,
    );
  }
  const container = await unless([409], () => createContainer(docker, spec, now));
  // 409: another worker was quicker; the next look adopts its box.
  if (container === undefined) return;
  const found = await unless([404], () => container.inspect());
  const differing = found === undefined ? [] : differences(found, spec);
  if (differing.length === 0) return;
  await unless([404, 409], () => container.remove({ force: true }));
  throw refused(spec, differing);
}

async function createContainer(docker: Dockerode, spec: BoxSpec, now: Date): Promise<Dockerode.Container> {
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

function assertOurs(found: Dockerode.ContainerInspectInfo, spec: BoxSpec): void {
  const differing = differences(found, spec);
  if (differing.length > 0) throw refused(spec, differing);
}

function refused(spec: BoxSpec, differing: readonly string[]): Error {
  return fatal(
    "SandboxRefused",
    `the container ${boxName(spec.sessionId)} is not the box it must be, so nothing is run in it: ${differing.join("; ")}. ` +
      "Its files are kept on the volume of that name; remove the container to have it made anew",
  );
}

function abortable<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return promise;
  return new Promise<T>((resolve, reject) => {
    const aborted = (): void => reject(signal.reason);
    signal.addEventListener("abort", aborted, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", aborted));
  });
}
