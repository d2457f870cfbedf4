/**
 * What a base's set-up made outside its workspace: in the home folder. It is kept as a small image, from which the sandboxes of
 * sessions on that base are made (docs/decisions/0054).
 */
import type Dockerode from "dockerode";
import type { SandboxSpec } from "../sandbox-host.ts";
import type { BaseSetUp } from "../sandbox.ts";
import { writtenBytes } from "./docker-containers.ts";
import { unless } from "./docker-errors.ts";
import { baseVolume, EGRESS_TOKEN_LABEL, INSTALLATION_LABEL, MAKES_LABEL, sandboxName } from "./profile.ts";
import { MADE_FROM_LABEL } from "./set-up-images.ts";

/** Label of such an image: the base's key. */
const HOME_LABEL = "longhaul.home";
/** Label of such an image: what the set-up depends on. */
const HOME_SET_UP_LABEL = "longhaul.home.set-up";

const homeName = (key: string, installation: string | undefined) => ({
  repo: "longhaul-base",
  tag: baseVolume(key, installation).slice("longhaul-".length),
});

const homeImage = (key: string, installation: string | undefined): string =>
  Object.values(homeName(key, installation)).join(":");

/** Larger ones are not kept: then the set-up runs in each session. Source: the same limit as of kept set-ups (agent/setup.py). */
const MAX_HOME_BYTES = 2 * 2 ** 30;

/** Keeps what the maker's sandbox has beside its workspace. Idempotent. @returns what it takes on the disk, in bytes */
export async function keepHome(
  docker: Dockerode,
  spec: SandboxSpec,
  { key, setUp }: { readonly key: string; readonly setUp: BaseSetUp },
): Promise<number> {
  const container = docker.getContainer(sandboxName(spec.sessionId));
  const bytes = (await writtenBytes(docker, spec)) ?? 0;
  if (bytes > MAX_HOME_BYTES) return 0;
  const labels = {
    [HOME_LABEL]: key,
    [HOME_SET_UP_LABEL]: setUp,
    [MADE_FROM_LABEL]: spec.image,
    [INSTALLATION_LABEL]: spec.installation ?? "",
    // Those of the maker's container, which the image would have, and each container made of it.
    [MAKES_LABEL]: "",
    [EGRESS_TOKEN_LABEL]: "",
  };
  const changes = Object.entries(labels).map(([name, value]) => `LABEL ${name}=${JSON.stringify(value)}`);
  // No pause is needed: the set-up is over, so nothing is writing.
  await container.commit({ ...homeName(key, spec.installation), pause: false, changes });
  return bytes;
}

interface Home {
  /** By its id. */
  readonly image: string;
  readonly setUp: BaseSetUp;
}

export async function findHome(
  docker: Dockerode,
  key: string,
  installation: string | undefined,
): Promise<Home | undefined> {
  const info = await unless([404], () => docker.getImage(homeImage(key, installation)).inspect());
  const labels: Record<string, string> = info?.Config.Labels ?? {};
  const isOurs = labels[HOME_LABEL] === key && (labels[INSTALLATION_LABEL] ?? "") === (installation ?? "");
  return info === undefined || !isOurs ? undefined : { image: info.Id, setUp: toSetUp(labels) };
}

/** What is not ours counts as the stricter one. */
const toSetUp = (labels: Readonly<Record<string, string>>): BaseSetUp =>
  labels[HOME_SET_UP_LABEL] === "packages" ? "packages" : "files";

/** What the set-up of its base depends on, if a container of an image with these labels has what that made. */
export const setUpIn = (labels: Readonly<Record<string, string>>, base: string | undefined) =>
  base !== undefined && labels[HOME_LABEL] === base ? toSetUp(labels) : undefined;

export async function removeHome(docker: Dockerode, key: string, installation: string): Promise<void> {
  // 409: in use, as by a session that was begun just now.
  await unless([404, 409], () => docker.getImage(homeImage(key, installation)).remove());
}
