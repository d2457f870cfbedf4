/** Removes sandboxes and finds existing ones. */
import { setTimeout as sleep } from "node:timers/promises";
import type Dockerode from "dockerode";
import { fatal } from "../../contract/failures.ts";
import { unless } from "./docker-errors.ts";
import type { OwnSession } from "../sandbox-host.ts";
import { removeServices } from "./services/find-services.ts";
import {
  CREATED_LABEL,
  GUARD_LABEL,
  INSTALLATION_LABEL,
  isOwnedBy,
  layersName,
  sandboxName,
  SESSION_LABEL,
} from "./profile.ts";

/** How long a volume may be held by a container that is being removed. */
const VOLUME_TRIES = 50;
const RETRY_MS = 100;

/**
 * Removes the session's container and volume, and those of its services; nothing of others.
 * @returns the container's id, if there was one, or that the container of that name is another's
 */
export async function removeSandbox(
  docker: Dockerode,
  owner: OwnSession,
  keeps?: "service-data",
): Promise<{ readonly id: string | undefined; readonly isOthers: boolean }> {
  await removeServices(docker, owner, { keepsData: keeps === "service-data" });
  const name = sandboxName(owner.sessionId);
  const container = docker.getContainer(name);
  const info = await unless([404], () => container.inspect());
  const id = info !== undefined && isOwnedBy(owner, info.Config.Labels) ? info.Id : undefined;
  // 409: its removal is under way already.
  if (id !== undefined) await unless([404, 409], () => container.remove({ force: true, v: true }));
  await removeFirewallContainers(docker, owner);
  for (const volume of [layersName(owner.sessionId), name]) await removeVolume(docker, owner, volume);
  return { id, isOthers: info !== undefined && id === undefined };
}

/** How long its processes have to end, in seconds. Chosen: they were saved, and are told as gone. */
const STOP_SECONDS = 1;

/** Stops a sandbox; its services go, as they share its network namespace. @returns its id; undefined if there is none of ours */
export async function stopSandbox(docker: Dockerode, owner: OwnSession): Promise<string | undefined> {
  const container = docker.getContainer(sandboxName(owner.sessionId));
  const info = await unless([404], () => container.inspect());
  if (info === undefined || !isOwnedBy(owner, info.Config.Labels)) return undefined;
  await removeServices(docker, owner, { keepsData: true });
  // 304: it is stopped already.
  await unless([304, 404], () => container.stop({ t: STOP_SECONDS }));
  await removeFirewallContainers(docker, owner);
  return info.Id;
}

/** What a container of ours has written beside its volumes, in bytes, as the engine counts it; undefined if there is none. */
export async function writtenBytes(docker: Dockerode, owner: OwnSession): Promise<number | undefined> {
  const filters = { name: [`^/${sandboxName(owner.sessionId).replaceAll(".", "\\.")}$`] };
  const containers = await unless([], () => docker.listContainers({ all: true, size: true, filters }));
  const info = containers?.find(({ Labels }) => isOwnedBy(owner, Labels));
  return info && ((info as { readonly SizeRw?: number }).SizeRw ?? 0);
}

/** These containers remove themselves when they end; any left belong to a worker that died before it started them. */
async function removeFirewallContainers(docker: Dockerode, owner: OwnSession): Promise<void> {
  const filters = { label: [`${GUARD_LABEL}=${owner.sessionId}`] };
  for (const { Id: id, Labels: labels } of (await unless([], () =>
    docker.listContainers({ all: true, filters }),
  )) ?? []) {
    // Another session's sandbox, whose image has the label: a container has those of its image, too.
    if (labels[SESSION_LABEL] !== undefined) continue;
    if ((labels[INSTALLATION_LABEL] ?? "") !== (owner.installation ?? "")) continue;
    await unless([404, 409], () => docker.getContainer(id).remove({ force: true, v: true }));
  }
}

export async function removeVolume(docker: Dockerode, owner: OwnSession, name: string): Promise<void> {
  for (let tries = 0; tries < VOLUME_TRIES; tries++) {
    const labels = await volumeLabels(docker, name);
    if (!isOwnedBy(owner, labels)) return;
    // 404: another removal was faster.
    const removed = await unless([404, 409], async () => {
      await docker.getVolume(name).remove();
      return true;
    });
    if (removed === true) return;
    await sleep(RETRY_MS);
  }
}

/** The installation's sessions that have a container or a volume here, in any state, found by label and never by name. */
export async function labelledSessions(docker: Dockerode, installation = ""): Promise<string[]> {
  const filters = { label: [SESSION_LABEL] };
  const containers = (await unless([], () => docker.listContainers({ all: true, filters }))) ?? [];
  const volumes = (await unless([], () => docker.listVolumes({ filters })))?.Volumes ?? [];
  const sessions = new Set<string>();
  for (const { Labels: labels } of [...containers, ...volumes]) {
    const session: string | undefined = labels?.[SESSION_LABEL];
    if (session !== undefined && (labels?.[INSTALLATION_LABEL] ?? "") === installation) sessions.add(session);
  }
  return [...sessions];
}

/** The labels of the volume with that name; undefined if there is none. */
export async function volumeLabels(
  docker: Dockerode,
  name: string,
): Promise<Readonly<Record<string, string>> | undefined> {
  const volume = await unless([404], () => docker.getVolume(name).inspect());
  // The engine reports null if there are no labels.
  return volume && { ...volume.Labels };
}

interface VolumeSettings {
  /** Beside those that are proof. */
  readonly labels?: Record<string, string>;
  /** Of the engine's local driver. */
  readonly options?: Record<string, string>;
}

/**
 * Makes a volume, or takes the existing one of that name if it proves to be the same. Idempotent.
 * @param proof labels that an existing one must have, with just these values
 * @throws SandboxRefused (fatal) if it is another's, which is left as it is
 */
export async function ownVolume(
  docker: Dockerode,
  name: string,
  proof: Readonly<Record<string, string>>,
  more: VolumeSettings = {},
): Promise<void> {
  // Returns the existing one if there is one.
  await unless([], () =>
    docker.createVolume({ Name: name, Labels: { ...more.labels, ...proof }, DriverOpts: more.options }),
  );
  const labels = await volumeLabels(docker, name);
  if (labels === undefined || Object.entries(proof).every(([label, value]) => labels[label] === value))
    return;
  throw fatal(
    "SandboxRefused",
    `the volume ${name} belongs to another session or program, and is left as it is; rename or remove it`,
  );
}

/**
 * Distinguishes a session's volume from another of its name: our label, in milliseconds; the engine's own creation time has
 * seconds. Undefined if it has no volume here.
 */
export async function volumeIdentity(docker: Dockerode, owner: OwnSession): Promise<string | undefined> {
  const volume = await unless([404], () => docker.getVolume(sandboxName(owner.sessionId)).inspect());
  if (volume === undefined || !isOwnedBy(owner, volume.Labels)) return undefined;
  const labels: Record<string, string> = volume.Labels ?? {};
  return labels[CREATED_LABEL] ?? ("CreatedAt" in volume ? String(volume.CreatedAt) : "");
}
