/** Bases on one Docker host: the volumes of sandboxes in which they were made, each with an empty volume that says that it is finished. */
import type Dockerode from "dockerode";
import { retryable } from "../../contract/failures.ts";
import type { Bases, FilledBase, KeptBase, OwnSession, SandboxSpec } from "../sandbox-host.ts";
import type { Sandbox } from "../sandbox.ts";
import { findHome, keepHome, removeHome } from "./base-homes.ts";
import { unless } from "./docker-errors.ts";
import { ownVolume, removeSandbox, volumeLabels } from "./docker-containers.ts";
import { trialSession, tryLayers } from "./layers.ts";
import {
  BASE_LABEL,
  baseMaker,
  baseVolume,
  INSTALLATION_LABEL,
  MAKES_LABEL,
  sandboxName,
  SESSION_LABEL,
} from "./profile.ts";

interface BasesOptions {
  readonly docker: Dockerode;
  readonly installation: () => Promise<string>;
  readonly open: (spec: SandboxSpec, signal: AbortSignal) => Promise<Sandbox>;
  /** Closes the link to a container that is removed. */
  readonly drop: (containerId: string, why: string) => void;
}

/** Label of the volume that says that a base is made: what the base takes on the disk. */
const BYTES_LABEL = "longhaul.bytes";

/** Volumes cannot be labelled later, so this one is made when the base is finished. */
const readyName = (key: string, installation: string): string =>
  `longhaul.base-${baseVolume(key, installation).slice("longhaul-".length)}`;

/** How long a trial counts: an engine may be restarted with other volumes, and an image made. Chosen: one takes half a second. */
const TRIAL_MS = 600_000;

export function createBases({ docker, installation, open, drop }: BasesOptions): Bases {
  /** By image. */
  const trials = new Map<string, { readonly trial: Promise<string | undefined>; readonly beganMs: number }>();
  return {
    unable(image) {
      const before = trials.get(image);
      if (before !== undefined && performance.now() - before.beganMs < TRIAL_MS) return before.trial;
      const trial = tryLayers(docker, image);
      trials.set(image, { trial, beganMs: performance.now() });
      // An engine that was away says nothing of layers.
      trial.catch(() => trials.delete(image));
      return trial;
    },
    isMade: async (key) => isBaseMade(docker, key, await installation()),
    setUp: async (key) => (await findHome(docker, key, await installation()))?.setUp,
    imageId: async (image) => (await unless([404], () => docker.getImage(image).inspect()))?.Id,
    async make(key, spec, fill, signal) {
      const ours = await installation();
      const maker = baseMaker(key, ours);
      if (await isUsed(docker, key, ours))
        throw retryable(
          "SandboxUnavailable",
          "sessions whose rows are gone still stand on this base; it is tried again",
        );
      // Half of one may be left: it begins again, with an empty workspace.
      await removeMaker(maker);
      let filled: FilledBase;
      let homeBytes = 0;
      try {
        filled = await fill(await open({ ...spec, ...maker }, signal));
        const { setUp } = filled;
        if (setUp !== undefined) homeBytes = await keepHome(docker, { ...spec, ...maker }, { key, setUp });
      } catch (error) {
        // What fails here is left for the next one, or for `removeOldBases`.
        await removeMaker(maker).catch(() => undefined);
        throw error;
      }
      const container = docker.getContainer(sandboxName(maker.sessionId));
      const { Id: id } = await container.inspect();
      await container.remove({ force: true, v: true });
      drop(id, "its workspace is finished, as the base of others");
      const labels = { [BYTES_LABEL]: String(filled.bytes + homeBytes) };
      await ownVolume(docker, readyName(key, ours), readyLabels(key, ours), { labels });
    },
    list: async () => listBases(docker, await installation()),
    forget: async (key) => forgetBase(docker, key, await installation()),
  };

  async function removeMaker(maker: OwnSession): Promise<void> {
    const { id } = await removeSandbox(docker, maker);
    if (id !== undefined) drop(id, "the base is made again");
  }
}

const readyLabels = (key: string, installation: string): Record<string, string> => ({
  [BASE_LABEL]: key,
  [INSTALLATION_LABEL]: installation,
});

export async function isBaseMade(docker: Dockerode, key: string, installation: string): Promise<boolean> {
  const [ready, volume] = await Promise.all(
    [readyName(key, installation), baseVolume(key, installation)].map((name) => volumeLabels(docker, name)),
  );
  const isOurs = Object.entries(readyLabels(key, installation)).every(
    ([label, value]) => ready?.[label] === value,
  );
  return isOurs && volume !== undefined;
}

/** A week: a base that nothing stands on is older than the work of those who would. */
const MAX_AGE_MS = 7 * 24 * 3_600_000;

/** Longer than any checkout takes: its worker died. */
const MAX_MAKING_MS = 24 * 3_600_000;

/** Removes bases, of all installations, on which nothing stands any more, and what was left half made. @returns a line for each */
export async function removeOldBases(docker: Dockerode): Promise<string[]> {
  return [...(await removeLeftMakers(docker)), ...(await removeUnusedHere(docker))];
}

/** What a worker that died in a making or in a trial left. */
async function removeLeftMakers(docker: Dockerode): Promise<string[]> {
  const filters = { label: [MAKES_LABEL] };
  const volumes = (await unless([], () => docker.listVolumes({ filters })))?.Volumes ?? [];
  const removed: string[] = [];
  for (const volume of volumes) {
    const { [MAKES_LABEL]: key = "", [INSTALLATION_LABEL]: installation = "" } = volume.Labels;
    if (!isOlder(volume, MAX_MAKING_MS) || (await isBaseMade(docker, key, installation))) continue;
    await removeSandbox(docker, trialSession(key));
    await removeSandbox(docker, baseMaker(key, installation));
    await removeHome(docker, key, installation);
    removed.push(`removed half of the base ${key}`);
  }
  return removed;
}

/** By the time that the engine gives; without one it is new. */
const isOlder = (volume: object, ageMs: number): boolean =>
  "CreatedAt" in volume && Date.now() - Date.parse(String(volume.CreatedAt)) >= ageMs;

async function removeUnusedHere(docker: Dockerode): Promise<string[]> {
  const filters = { label: [BASE_LABEL] };
  const volumes = (await unless([], () => docker.listVolumes({ filters })))?.Volumes ?? [];
  const removed: string[] = [];
  for (const volume of volumes) {
    const { [BASE_LABEL]: key = "", [INSTALLATION_LABEL]: installation = "" } = volume.Labels;
    if (volume.Name !== readyName(key, installation)) continue;
    if (!isOlder(volume, MAX_AGE_MS)) continue;
    if (await forgetBase(docker, key, installation)) removed.push(`removed the base ${volume.Name}`);
  }
  return removed;
}

async function listBases(docker: Dockerode, installation: string): Promise<KeptBase[]> {
  const filters = { label: [BASE_LABEL, `${INSTALLATION_LABEL}=${installation}`] };
  const volumes = (await unless([], () => docker.listVolumes({ filters })))?.Volumes ?? [];
  return volumes.flatMap(({ Name, Labels: { [BASE_LABEL]: key = "", [BYTES_LABEL]: bytes } }) => {
    if (Name !== readyName(key, installation)) return [];
    const sessions = volumes
      .filter(({ Name: other, Labels }) => other !== Name && Labels[BASE_LABEL] === key)
      .map(({ Labels }) => Labels[SESSION_LABEL] ?? "");
    return [{ key, bytes: Number(bytes ?? 0), sessions }];
  });
}

async function forgetBase(docker: Dockerode, key: string, installation: string): Promise<boolean> {
  if (await isUsed(docker, key, installation)) return false;
  const mark = docker.getVolume(readyName(key, installation));
  const info = await unless([404], () => mark.inspect());
  // Without its mark it is no base any more, whatever happens next.
  await unless([404, 409], () => mark.remove());
  // A session that begins on it now either is seen here, or sees that the mark is gone.
  if (info !== undefined && (await isUsed(docker, key, installation))) {
    await ownVolume(docker, info.Name, readyLabels(key, installation), { labels: info.Labels });
    return false;
  }
  await removeSandbox(docker, baseMaker(key, installation));
  await removeHome(docker, key, installation);
  return true;
}

/** Whether a session's layers stand on it, also if the session has no container now. */
async function isUsed(docker: Dockerode, key: string, installation: string): Promise<boolean> {
  const filters = { label: [`${BASE_LABEL}=${key}`] };
  const volumes = (await unless([], () => docker.listVolumes({ filters })))?.Volumes ?? [];
  return volumes.some(
    ({ Name, Labels }) =>
      Name !== readyName(key, installation) && (Labels[INSTALLATION_LABEL] ?? "") === installation,
  );
}
