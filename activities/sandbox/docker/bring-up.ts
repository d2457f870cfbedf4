/** Brings a session's container up: creates it, adopts an existing one, or starts a stopped one. */
import { randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type Dockerode from "dockerode";
import type { ContainerInspectInfo } from "dockerode";
import { retryable } from "../../contract/failures.ts";
import type { SandboxSpec } from "../spec.ts";
import { ownVolume } from "./docker-containers.ts";
import { EGRESS_LABELS } from "./egress-container.ts";
import { cannotStart, imageMissing, impossible, statusOf, unless, unlikeProfile } from "./docker-errors.ts";
import {
  CACHE_LABEL,
  cacheName,
  createOptions,
  isMountedOtherwise,
  PROFILE_LABEL,
  sandboxLabels,
  sandboxName,
  SESSION_LABEL,
} from "./profile.ts";
import type { ImageCheck } from "./unfit-image.ts";
import { differences, type Surroundings } from "./profile-differences.ts";

/** Container states change at any time (another worker, a daemon that lags behind): how often we look again. */
const MAX_ROUNDS = 50;
const ROUND_MS = 100;
/** The container's exit code if its program does not exist. */
export const NOT_FOUND_EXIT_CODE = 127;

export interface ContainerHost {
  readonly docker: Dockerode;
  readonly surroundingsOf: (found: ContainerInspectInfo) => Promise<Surroundings>;
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
export async function bringUp(
  host: ContainerHost,
  spec: SandboxSpec,
  signal: AbortSignal,
): Promise<RunningContainer> {
  const { docker, surroundingsOf, say } = host;
  const name = sandboxName(spec.sessionId);
  const container = docker.getContainer(name);
  let started = false;
  for (let round = 0; round < MAX_ROUNDS; round++) {
    signal.throwIfAborted();
    const found = await unless([404], () => container.inspect());
    if (found === undefined) {
      await create(host, spec);
      say(`sandbox: created ${name} from ${spec.image}`);
      continue;
    }
    if (isMountedOtherwise(found, spec)) {
      await removeOtherwiseMounted(host, found, spec);
      continue;
    }
    const around = await surroundingsOf(found);
    if (isOlder(found, spec, around)) {
      await unless([404, 409], () => container.remove({ force: true, v: true }));
      host.onRemoved(found.Id, "the sandbox is made again: another version of Longhaul had made it");
      continue;
    }
    assertOurs(found, spec, around);
    if (found.State.Running && !found.State.Paused) return { found, started };
    if (found.State.ExitCode === NOT_FOUND_EXIT_CODE) throw await cannotStart(docker, spec, undefined);
    if (found.State.Paused) await unless([404, 409, 500], () => container.unpause());
    else if (found.State.Status === "dead")
      await unless([404, 409], () => container.remove({ force: true, v: true }));
    // 304: it runs already; 404 and 409: it is being removed. The next round shows which.
    else started = (await unless([304, 404, 409], () => container.start().then(() => true))) === true;
    if (round > 1) await sleep(ROUND_MS);
  }
  throw retryable("SandboxUnavailable", `the sandbox ${name} does not start; its files are kept`);
}

/** Its files stay on their volume. */
async function removeOtherwiseMounted(
  { docker, surroundingsOf, onRemoved }: ContainerHost,
  found: ContainerInspectInfo,
  spec: SandboxSpec,
): Promise<void> {
  const { readOnly, ...writable } = spec;
  assertOurs(found, readOnly ? writable : { ...spec, readOnly: true }, await surroundingsOf(found));
  await unless([404, 409], () =>
    docker.getContainer(sandboxName(spec.sessionId)).remove({ force: true, v: true }),
  );
  onRemoved(found.Id, "the sandbox is recreated with its workspace mounted differently");
}

async function create(
  { docker, surroundingsOf, egressVolume, images }: ContainerHost,
  spec: SandboxSpec,
): Promise<void> {
  await images.refuseUnfit(spec);
  const now = new Date();
  const name = sandboxName(spec.sessionId);
  const { [SESSION_LABEL]: session = "", ...labels } = sandboxLabels(spec.sessionId, now);
  await ownVolume(docker, name, { [SESSION_LABEL]: session }, labels);
  if (spec.cache !== undefined) await ownVolume(docker, cacheName(spec.cache), { [CACHE_LABEL]: spec.cache });
  // The proxy may be started after it.
  if (spec.network === "listed") await ownVolume(docker, egressVolume, EGRESS_LABELS);
  const egress = { volume: egressVolume, token: randomBytes(16).toString("hex") };
  const options = createOptions(spec, now, spec.network === "listed" ? egress : undefined);
  const container = await unless([409], () => createContainer(docker, spec, options));
  // 409: another worker was faster; the next round adopts its sandbox.
  if (container === undefined) return;
  const found = await unless([404], () => container.inspect());
  const differing = found === undefined ? [] : differences(found, spec, await surroundingsOf(found));
  if (differing.length === 0) return;
  await unless([404, 409], () => container.remove({ force: true, v: true }));
  throw unlikeProfile(name, differing);
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
function isOlder(found: ContainerInspectInfo, spec: SandboxSpec, around: Surroundings): boolean {
  const { [SESSION_LABEL]: session, [PROFILE_LABEL]: profile } = found.Config.Labels;
  const isOfSession =
    session === spec.sessionId &&
    found.Mounts.some(
      ({ Type, Name, Destination }) =>
        Type === "volume" && Name === sandboxName(spec.sessionId) && Destination === "/workspace",
    );
  return (
    isOfSession &&
    profile !== createOptions(spec, new Date()).Labels?.[PROFILE_LABEL] &&
    differences(found, spec, around).length > 0
  );
}

function assertOurs(found: ContainerInspectInfo, spec: SandboxSpec, around: Surroundings): void {
  const differing = differences(found, spec, around);
  if (differing.length > 0) throw unlikeProfile(sandboxName(spec.sessionId), differing);
}
