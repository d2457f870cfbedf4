/**
 * Sandboxes in containers that someone else owns: our supervisor is started in a running container, commands run as the
 * container's own user, and at the end our processes and files are removed. The container is never started, stopped, limited or
 * removed. An empty volume with the session's name, labelled with the container, tells the next worker and the reaper that the
 * session is in it.
 */
import { createHash } from "node:crypto";
import type Dockerode from "dockerode";
import { fatal } from "../../contract/failures.ts";
import { reasonOf } from "../../contract/reason-of.ts";
import { attachSource, detachSource, pythonArguments, supervisorSource } from "../agent/sources.ts";
import { SandboxLost } from "../sandbox-lost.ts";
import { abortable } from "../shared-work.ts";
import type { Sandbox } from "../sandbox.ts";
import type { SandboxHost } from "../sandbox-host.ts";
import type { SandboxSpec } from "../spec.ts";
import { volumeIdentity } from "./docker-containers.ts";
import { unless } from "./docker-errors.ts";
import { createDockerSandbox } from "./docker-sandbox.ts";
import { runInside } from "./run-program.ts";
import { sandboxLabels, sandboxName, SESSION_LABEL } from "./profile.ts";
import { createSupervisorLink, type SupervisorLink } from "./supervisor-link.ts";

/** Label of that volume: the container's id. */
const ATTACHED_LABEL = "longhaul.attached";
/** Docker's own tools show this many characters of an id. */
const SHORT_ID = 12;
const NOT_OURS = "the container belongs to someone else, who decides what it can reach and do";
/** The supervisor has just been started, or a command has killed it: after some 20 tries a new one is started. */
const CONNECT_SECONDS = 0.5;

type AttachedSpec = SandboxSpec & { readonly container: NonNullable<SandboxSpec["container"]> };

export interface AttachOptions {
  readonly docker: Dockerode;
  /** Whether sessions of this worker may work in other people's containers. */
  readonly isAllowed: boolean;
  readonly say?: (line: string) => void;
}

/** Adds other people's containers to a host's own sandboxes. */
export function withAttached(
  host: SandboxHost,
  { docker, isAllowed, say = () => undefined }: AttachOptions,
): SandboxHost {
  const links = new Map<string, SupervisorLink>();

  /** @throws ContainerUnavailable (fatal), SandboxUnavailable (retryable) */
  async function open(spec: AttachedSpec, signal?: AbortSignal): Promise<Sandbox> {
    const { sessionId, container } = spec;
    if (!isAllowed)
      throw unavailable(
        container.name,
        "this worker does not allow work in other people's containers (LONGHAUL_ALLOW_CONTAINERS=1 allows it)",
      );
    const found = await usableContainer(docker, container);
    if (found.id === undefined) throw unavailable(container.name, found.why);
    await mark(sessionId, container.name, found.id);
    const { link, empty, boot } = await abortable(connect(spec, found.id), signal);
    const volume = (await volumeIdentity(docker, sessionId)) ?? "";
    const { image } = found;
    const identity = { host: host.name, volume, container: found.id.slice(0, SHORT_ID), boot, image };
    const network = { reach: "everything", why: NOT_OURS } as const;
    return createDockerSandbox(
      { container: container.name, identity, empty, network, gaps: [NOT_OURS] },
      link,
    );
  }

  /** Removes what a session has in someone else's container; does nothing if it has none. */
  async function leave(sessionId: string): Promise<void> {
    const id = await containerOf(sessionId);
    if (id === undefined) return;
    links.get(sessionId)?.close("the session has left the container");
    links.delete(sessionId);
    const found = await unless([404], () => docker.getContainer(id).inspect());
    // Our processes ended with the container; in one that is only stopped, our files stay.
    if (found?.State.Running !== true || found.State.Paused) return;
    const { answer } = await runInside(docker, id, {
      argv: pythonArguments("LONGHAUL_DETACH"),
      env: [`LONGHAUL_DETACH=${detachSource}`, attachedVariable(sessionId, "/")],
    });
    say(
      `sandbox: left ${found.Name.replace(/^\//, "")}${answer?.["left"] === 0 ? "" : ", not all processes of it ended"}`,
    );
  }

  async function containerOf(sessionId: string): Promise<string | undefined> {
    const found = await unless([404], () => docker.getVolume(sandboxName(sessionId)).inspect());
    const labels: Record<string, string> = found?.Labels ?? {};
    return labels[SESSION_LABEL] === sessionId ? labels[ATTACHED_LABEL] : undefined;
  }

  async function mark(sessionId: string, name: string, id: string): Promise<void> {
    const Labels = { ...sandboxLabels(sessionId, new Date()), [ATTACHED_LABEL]: id };
    // Returns the existing one if there is one.
    await unless([], () => docker.createVolume({ Name: sandboxName(sessionId), Labels }));
    if ((await containerOf(sessionId)) !== id)
      throw unavailable(name, "it is not the container of that name that the session worked in");
  }

  async function connect(spec: AttachedSpec, id: string) {
    // A command may have ended the supervisor, and a link belongs to one start of it.
    const wasRunning = await putIn(spec, id);
    const known = links.get(spec.sessionId);
    if (known !== undefined && wasRunning) {
      try {
        return { link: known, ...(await known.connect()) };
      } catch (error) {
        if (!(error instanceof SandboxLost)) throw error;
      }
    }
    known?.close("the supervisor was started again");
    const link = createSupervisorLink(docker, id, {
      probe: [],
      ready: Promise.resolve(),
      // We do not write system files in someone else's container.
      settings: { env: spec.settings?.env ?? {}, files: {}, registries: [] },
      relay: {
        environment: [
          `LONGHAUL_SOCKET=${homeOf(spec.sessionId)}/control.sock`,
          `LONGHAUL_CONNECT_SECONDS=${CONNECT_SECONDS}`,
        ],
      },
    });
    links.set(spec.sessionId, link);
    return { link, ...(await link.connect()) };
  }

  /** Starts the supervisor unless it is running. @returns whether it was running */
  async function putIn(
    { sessionId, container: { name, folder } }: AttachedSpec,
    id: string,
  ): Promise<boolean> {
    const place = attachedVariable(sessionId, folder);
    const { answer, said } = await runInside(docker, id, {
      argv: pythonArguments("LONGHAUL_ATTACH"),
      env: [`LONGHAUL_ATTACH=${attachSource}`, place],
    });
    if (answer === undefined)
      throw unavailable(name, `python3, which the supervisor needs, does not run in it: ${said}`);
    if (typeof answer["unable"] === "string") throw unavailable(name, answer["unable"]);
    if (answer["running"] === true) return true;
    const exec = await docker.getContainer(id).exec({
      Cmd: pythonArguments("LONGHAUL_SUPERVISOR"),
      Env: [`LONGHAUL_SUPERVISOR=${supervisorSource}`, place, `LONGHAUL_HOME=${homeOf(sessionId)}`],
      WorkingDir: "/",
    });
    // Nothing is attached to its streams, so it outlives this worker.
    (await exec.start({ Detach: true })).resume();
    say(`sandbox: put the supervisor into ${name}`);
    return false;
  }

  return {
    ...host,
    open: (spec, signal) =>
      spec.container === undefined
        ? host.open(spec, signal)
        : open({ ...spec, container: spec.container }, signal),
    async remove(sessionId) {
      await leave(sessionId);
      // Removes the volume, as for any session.
      await host.remove(sessionId);
    },
    async close() {
      for (const link of links.values())
        link.close("the worker is stopping; commands in the container continue");
      links.clear();
      await host.close();
    },
  };
}

const homeOf = (sessionId: string): string => `/tmp/.longhaul-${hashOf(sessionId)}`;

const hashOf = (sessionId: string): string =>
  createHash("sha256").update(sessionId).digest("hex").slice(0, SHORT_ID);

/** Numbers of a session's commands count down from this plus a hash of its id, so that sessions in one container differ. */
const LEAST_NUMBER = 2 ** 33;

/** Tells the programs in the sandbox that they are attached: see agent/place.py. */
function attachedVariable(sessionId: string, folder: string): string {
  const mark = hashOf(sessionId);
  const number = Number.parseInt(mark, 16) + LEAST_NUMBER;
  return `LONGHAUL_ATTACHED=${JSON.stringify({ home: homeOf(sessionId), workspace: folder, mark, number })}`;
}

const unavailable = (name: string, why: string): Error =>
  fatal(
    "ContainerUnavailable",
    `No session can work in the container ${name}: ${why}. Nothing in it was changed, and what was said is kept.`,
  );

export type FoundContainer =
  | { readonly id: string; readonly folder: string; readonly image: string }
  | { readonly id: undefined; readonly why: string };

/** The running container of that name, with its own working folder. @throws SandboxUnavailable (retryable) */
export async function usableContainer(
  docker: Dockerode,
  { name, id }: { readonly name: string; readonly id?: string | undefined },
): Promise<FoundContainer> {
  const found = await unless([404], () => docker.getContainer(name).inspect());
  if (found === undefined)
    return { id: undefined, why: "there is none of that name on the worker's Docker host" };
  if (id !== undefined && found.Id !== id)
    return { id: undefined, why: "it is not the container of that name that was meant" };
  if (found.Config.Labels[SESSION_LABEL] !== undefined)
    return { id: undefined, why: "it is a sandbox of Longhaul's own" };
  if (!found.State.Running || found.State.Paused)
    return { id: undefined, why: `it is not running (${found.State.Status})` };
  return { id: found.Id, folder: found.Config.WorkingDir || "/", image: found.Image };
}

/** Checks for python3, which the supervisor needs. @returns why it cannot be used; undefined if it can */
export async function lacksPython(docker: Dockerode, id: string): Promise<string | undefined> {
  try {
    const { answer, said } = await runInside(docker, id, {
      argv: ["python3", "-I", "-S", "-c", "print('{}')"],
    });
    return answer === undefined
      ? `python3, which the supervisor needs, does not run in it: ${said}`
      : undefined;
  } catch (error) {
    return reasonOf(error);
  }
}
