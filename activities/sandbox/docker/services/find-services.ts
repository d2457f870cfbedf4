/** Finds, stops and removes the containers and volumes of services, by label and never by name. */
import { setTimeout as sleep } from "node:timers/promises";
import type Dockerode from "dockerode";
import type { OwnSession } from "../../sandbox-host.ts";
import { unless } from "../docker-errors.ts";
import { INSTALLATION_LABEL, isOwnedBy, SESSION_LABEL, labelledSession } from "../profile.ts";
import { ORDER_LABEL, SERVICE_LABEL } from "./service-profile.ts";

/** A session's services, whatever their state, in the order in which they are started. */
export async function serviceContainers(
  docker: Dockerode,
  owner: OwnSession,
): Promise<Dockerode.ContainerInfo[]> {
  const filters = { label: [SERVICE_LABEL, `${SESSION_LABEL}=${labelledSession(owner)}`] };
  const containers = (await unless([], () => docker.listContainers({ all: true, filters }))) ?? [];
  return containers
    .filter(({ Labels: labels }) => isOwnedBy(owner, labels))
    .toSorted((left, right) => orderOf(left) - orderOf(right));
}

const orderOf = ({ Labels: labels }: Dockerode.ContainerInfo): number => Number(labels[ORDER_LABEL] ?? 0);

/**
 * Removes a session's services, the last started first. Idempotent.
 * @param keepsData their kept data stays: then they are stopped first, so that what they have in memory is written
 */
export async function removeServices(
  docker: Dockerode,
  owner: OwnSession,
  { keepsData }: { readonly keepsData: boolean },
): Promise<void> {
  for (const { Id: id } of (await serviceContainers(docker, owner)).toReversed()) {
    const container = docker.getContainer(id);
    if (keepsData) await unless([304, 404, 409], () => container.stop());
    await unless([404, 409], () => container.remove({ force: true, v: true }));
  }
  if (!keepsData) await removeServiceVolumes(docker, owner);
}

async function removeServiceVolumes(docker: Dockerode, owner: OwnSession): Promise<void> {
  const filters = { label: [SERVICE_LABEL, `${SESSION_LABEL}=${labelledSession(owner)}`] };
  const volumes = await listedVolumes(docker, filters);
  for (const { Name: name, Labels: labels } of volumes)
    // 409: a container that is being removed still has it, and the next removal finds it.
    if (isOwnedBy(owner, labels)) await unless([404, 409], () => docker.getVolume(name).remove());
}

/** The engine fails (404) when a volume is removed while it lists them, as when several sessions end at once. */
const LIST_TRIES = 50;
const RETRY_MS = 100;

async function listedVolumes(docker: Dockerode, filters: { label: string[] }) {
  for (let tries = 1; tries < LIST_TRIES; tries++) {
    const answer = await unless([404], () => docker.listVolumes({ filters }));
    if (answer !== undefined) return answer.Volumes ?? [];
    await sleep(RETRY_MS);
  }
  return (await unless([], () => docker.listVolumes({ filters })))?.Volumes ?? [];
}

/**
 * Removes services whose sandbox is gone: in its namespace nothing can reach them, and no later sandbox gets into it.
 * @returns a line for each
 */
export async function removeOrphanServices(docker: Dockerode, installation: string): Promise<string[]> {
  const filters = { label: [SERVICE_LABEL] };
  const containers = (await unless([], () => docker.listContainers({ all: true, filters }))) ?? [];
  const removed: string[] = [];
  for (const { Id: id, Names: names, Labels: labels, HostConfig: host } of containers) {
    if ((labels[INSTALLATION_LABEL] ?? "") !== installation) continue;
    const sandbox = /^container:(.+)$/.exec(host.NetworkMode)?.[1];
    if (sandbox === undefined) continue;
    if ((await unless([404], () => docker.getContainer(sandbox).inspect())) !== undefined) continue;
    await unless([404, 409], () => docker.getContainer(id).remove({ force: true, v: true }));
    removed.push(`removed the service ${(names[0] ?? id).replace(/^\//, "")}, whose sandbox is gone`);
  }
  return removed;
}
