/**
 * Sandboxes in containers that someone else owns: our supervisor is started in a running container, commands run as the
 * container's own user, and at the end our processes and files are removed. The container is never started, stopped, limited or
 * removed. An empty volume with the session's name, labelled with the container, tells the next worker and the reaper that the
 * session is in it.
 */
import { createHash } from "node:crypto";
import type Dockerode from "dockerode";
import { reasonOf } from "../../contract/errors.ts";
import {
  imageSource,
  pythonArguments,
  attachSource,
  detachSource,
  supervisorSource,
} from "../agent/sources.ts";
import type { SandboxHost, OwnSession, SandboxSpec } from "../sandbox-host.ts";
import { SandboxLost, type Sandbox } from "../sandbox.ts";
import { abortable } from "../shared-work.ts";
import { ownVolume, volumeIdentity, volumeLabels } from "./docker-containers.ts";
import { containerUnavailable, unless } from "./docker-errors.ts";
import { createDockerSandbox } from "./docker-sandbox.ts";
import { isOwnedBy, ownerLabels, sandboxLabels, sandboxName, SESSION_LABEL, SHORT_ID } from "./profile.ts";
import { runInside } from "./run-program.ts";
import { SupervisorLink } from "./supervisor-link.ts";

/** Label of that volume: the container's id. */
const ATTACHED_LABEL = "longhaul.attached";
const NOT_OURS = "the container belongs to someone else, who decides what it can reach and do";

type AttachedSpec = SandboxSpec & { readonly container: NonNullable<SandboxSpec["container"]> };

export interface AttachOptions {
  readonly docker: Dockerode;
  /** Whether sessions of this worker may work in other people's containers. */
  readonly isAllowed: boolean;
  /** As the host's. */
  readonly installation?: (() => Promise<string>) | undefined;
  readonly say?: (line: string) => void;
}

/** Adds other people's containers to a host's own sandboxes. */
export function withAttached(host: SandboxHost, options: AttachOptions): SandboxHost {
  const attached = new AttachedContainers(host.name, options);
  return {
    ...host,
    open: (spec, signal) =>
      spec.container === undefined
        ? host.open(spec, signal)
        : attached.open({ ...spec, container: spec.container }, signal),
    async remove(sessionId, options) {
      if (options?.only === undefined) await attached.leave(sessionId);
      // Removes the volume, as for any session.
      await host.remove(sessionId, options);
    },
    async close() {
      attached.close();
      await host.close();
    },
  };
}

class AttachedContainers {
  readonly #hostName: string;
  readonly #docker: Dockerode;
  readonly #isAllowed: boolean;
  readonly #installation: () => Promise<string>;
  readonly #say: (line: string) => void;
  /** By session. */
  readonly #links = new Map<string, SupervisorLink>();

  constructor(hostName: string, options: AttachOptions) {
    const { docker, isAllowed, installation = async () => "", say = () => undefined } = options;
    this.#hostName = hostName;
    this.#docker = docker;
    this.#isAllowed = isAllowed;
    this.#installation = installation;
    this.#say = say;
  }

  /** @throws ContainerUnavailable (fatal), SandboxUnavailable (retryable) */
  async open(spec: AttachedSpec, signal?: AbortSignal): Promise<Sandbox> {
    const { sessionId, container } = spec;
    if (!this.#isAllowed)
      throw containerUnavailable(
        container.name,
        "this worker does not allow work in other people's containers (LONGHAUL_ALLOW_CONTAINERS=1 allows it)",
      );
    const target = await usableContainer(this.#docker, container);
    if (target.id === undefined) throw containerUnavailable(container.name, target.why);
    await this.#mark(sessionId, container.name, target.id);
    const { link, empty, boot } = await abortable(this.#connect(spec, target.id), signal);
    const identity = {
      host: this.#hostName,
      volume: (await volumeIdentity(this.#docker, await this.#owner(sessionId))) ?? "",
      container: target.id.slice(0, SHORT_ID),
      boot,
      image: target.image,
    };
    const network = { reach: "everything", why: NOT_OURS } as const;
    return createDockerSandbox(
      { container: container.name, identity, empty, network, gaps: [NOT_OURS] },
      link,
    );
  }

  /** Removes what a session has in someone else's container; does nothing if it has none. */
  async leave(sessionId: string): Promise<void> {
    const id = await this.#containerOf(sessionId);
    if (id === undefined) return;
    this.#links.get(sessionId)?.close("the session has left the container");
    this.#links.delete(sessionId);
    const info = await unless([404], () => this.#docker.getContainer(id).inspect());
    // Our processes ended with the container; in one that is only stopped, our files stay.
    if (info?.State.Running !== true || info.State.Paused) return;
    const allEnded = await removeSupervisor(this.#docker, sessionId, id);
    this.#say(
      `sandbox: left ${info.Name.replace(/^\//, "")}${allEnded ? "" : ", not all processes of it ended"}`,
    );
  }

  close(): void {
    for (const link of this.#links.values())
      link.close("the worker is stopping; commands in the container continue");
    this.#links.clear();
  }

  async #owner(sessionId: string): Promise<OwnSession> {
    return { sessionId, installation: await this.#installation() };
  }

  async #containerOf(sessionId: string): Promise<string | undefined> {
    const labels = await volumeLabels(this.#docker, sandboxName(sessionId));
    return isOwnedBy(await this.#owner(sessionId), labels) ? labels?.[ATTACHED_LABEL] : undefined;
  }

  async #mark(sessionId: string, name: string, id: string): Promise<void> {
    const owner = await this.#owner(sessionId);
    const labels = { ...sandboxLabels(owner, new Date()), [ATTACHED_LABEL]: id };
    await ownVolume(this.#docker, sandboxName(sessionId), ownerLabels(owner), { labels });
    if ((await this.#containerOf(sessionId)) !== id)
      throw containerUnavailable(name, "it is not the container of that name that the session worked in");
  }

  async #connect({ sessionId, container: { name, folder }, settings }: AttachedSpec, id: string) {
    // A command may have ended the supervisor, and a link belongs to one start of it.
    const wasRunning = await startSupervisor(this.#docker, { sessionId, name, id, folder });
    if (!wasRunning) this.#say(`sandbox: put the supervisor into ${name}`);
    const existing = this.#links.get(sessionId);
    if (existing !== undefined && wasRunning) {
      try {
        return { link: existing, ...(await existing.connect()) };
      } catch (error) {
        if (!(error instanceof SandboxLost)) throw error;
      }
    }
    existing?.close("the supervisor was started again");
    const link = new SupervisorLink(this.#docker, id, {
      probe: [],
      ready: Promise.resolve(),
      // We do not write system files in someone else's container.
      settings: { env: settings?.env ?? {}, files: {}, registries: [] },
      relay: { environment: relayEnvironment(sessionId) },
    });
    this.#links.set(sessionId, link);
    return { link, ...(await link.connect()) };
  }
}

export type FoundContainer =
  | { readonly id: string; readonly folder: string; readonly image: string }
  | { readonly id: undefined; readonly why: string };

/** The running container of that name, with its own working folder. @throws SandboxUnavailable (retryable) */
export async function usableContainer(
  docker: Dockerode,
  { name, id }: { readonly name: string; readonly id?: string | undefined },
): Promise<FoundContainer> {
  const info = await unless([404], () => docker.getContainer(name).inspect());
  if (info === undefined)
    return { id: undefined, why: "there is none of that name on the worker's Docker host" };
  if (id !== undefined && info.Id !== id)
    return { id: undefined, why: "it is not the container of that name that was meant" };
  if (info.Config.Labels[SESSION_LABEL] !== undefined)
    return { id: undefined, why: "it is a sandbox of Longhaul's own" };
  if (!info.State.Running || info.State.Paused)
    return { id: undefined, why: `it is not running (${info.State.Status})` };
  return { id: info.Id, folder: info.Config.WorkingDir || "/", image: info.Image };
}

/** Checks for python3, which the supervisor needs. @returns why it cannot be used; undefined if it can */
export async function lacksPython(docker: Dockerode, id: string): Promise<string | undefined> {
  try {
    const { answer, output } = await runInside(docker, id, {
      argv: pythonArguments("LONGHAUL_IMAGE"),
      env: [`LONGHAUL_IMAGE=${imageSource}`, "LONGHAUL_FOLDERS=[]"],
    });
    return answer === undefined ? noPython(output) : undefined;
  } catch (error) {
    return reasonOf(error);
  }
}

const noPython = (output: string): string =>
  `python3, which the supervisor needs, does not run in it: ${output}`;

/** The supervisor has just been started, or a command has killed it: after some 20 tries a new one is started. */
const CONNECT_SECONDS = 0.5;
const HASH_CHARS = 12;
/** Numbers of a session's commands count down from this plus a hash of its id, so that sessions in one container differ. */
const LEAST_NUMBER = 2 ** 33;

interface AttachedPlace {
  readonly sessionId: string;
  /** Its name, for people. */
  readonly name: string;
  /** The container's id. */
  readonly id: string;
  /** The folder to work in. */
  readonly folder: string;
}

/**
 * Starts the supervisor unless it is running.
 * @returns whether it was running
 * @throws ContainerUnavailable (fatal), SandboxUnavailable (retryable)
 */
async function startSupervisor(docker: Dockerode, target: AttachedPlace): Promise<boolean> {
  const { sessionId, name, id, folder } = target;
  const attached = attachedVariable(sessionId, folder);
  const { answer, output } = await runInside(docker, id, {
    argv: pythonArguments("LONGHAUL_ATTACH"),
    env: [`LONGHAUL_ATTACH=${attachSource}`, attached],
  });
  if (answer === undefined) throw containerUnavailable(name, noPython(output));
  if (typeof answer["unable"] === "string") throw containerUnavailable(name, answer["unable"]);
  if (answer["running"] === true) return true;
  const exec = await docker.getContainer(id).exec({
    Cmd: pythonArguments("LONGHAUL_SUPERVISOR"),
    Env: [`LONGHAUL_SUPERVISOR=${supervisorSource()}`, attached, `LONGHAUL_HOME=${homeOf(sessionId)}`],
    WorkingDir: "/",
  });
  // Nothing is attached to its streams, so it outlives this worker.
  (await exec.start({ Detach: true })).resume();
  return false;
}

/** Ends the session's processes and removes our files. @returns whether all processes ended */
async function removeSupervisor(docker: Dockerode, sessionId: string, id: string): Promise<boolean> {
  const { answer } = await runInside(docker, id, {
    argv: pythonArguments("LONGHAUL_DETACH"),
    env: [`LONGHAUL_DETACH=${detachSource}`, attachedVariable(sessionId, "/")],
  });
  return answer?.["left"] === 0;
}

/** Variables of the relay that connects to the session's supervisor. */
const relayEnvironment = (sessionId: string): readonly string[] => [
  `LONGHAUL_SOCKET=${homeOf(sessionId)}/control.sock`,
  `LONGHAUL_CONNECT_SECONDS=${CONNECT_SECONDS}`,
];

/** Tells the programs in the container that they are attached: see agent/place.py. */
function attachedVariable(sessionId: string, folder: string): string {
  const mark = hashOf(sessionId);
  const number = Number.parseInt(mark, 16) + LEAST_NUMBER;
  return `LONGHAUL_ATTACHED=${JSON.stringify({ home: homeOf(sessionId), workspace: folder, mark, number })}`;
}

/** The folder with our files in the container. */
const homeOf = (sessionId: string): string => `/tmp/.longhaul-${hashOf(sessionId)}`;

const hashOf = (sessionId: string): string =>
  createHash("sha256").update(sessionId).digest("hex").slice(0, HASH_CHARS);
