/** Images that keep what a project's set-up made outside the workspace: one per key, on the host that made it. */
import type Dockerode from "dockerode";
import type { OwnSession, SandboxSpec } from "../sandbox-host.ts";
import { unless } from "./docker-errors.ts";
import { INSTALLATION_LABEL, sandboxName } from "./profile.ts";

/** Labels for the base image's name, and for its id: a newer image of the same name has other programs. */
export const MADE_FROM_LABEL = "longhaul.setup.image";
const MADE_FROM_ID_LABEL = "longhaul.setup.imageId";
const KEPT_LABEL = "longhaul.setup";
/** Which session made it: it goes with that session. */
const MAKER_LABEL = "longhaul.setup.session";
/** Whose it is: each owner has their own number of images. */
const OWNER_LABEL = "longhaul.setup.owner";
/** The commit that the workspace had, if it had one. */
const COMMIT_LABEL = "longhaul.setup.commit";
const REPOSITORY = "longhaul-setup";

/** A week: after that, packages that are not pinned are installed afresh. */
const MAX_AGE_MS = 7 * 24 * 3_600_000;
/** Per owner and host; each image has at most 2 GiB. */
const MAX_IMAGES = 10;
/** For unnamed images, which a newer one replaced or a build left behind. Longer than any build takes. */
const MAX_UNNAMED_AGE_MS = 24 * 3_600_000;

export const keptName = (key: string): string => `${REPOSITORY}:${key}`;

/** The image kept under this key on this host, if it was made from the session's image. */
export async function findKept(
  docker: Dockerode,
  spec: SandboxSpec,
  key: string,
): Promise<{ readonly image: string; readonly commit: string } | undefined> {
  const name = keptName(key);
  const [kept, base] = await Promise.all(
    [name, spec.image].map((image) => unless([404], () => docker.getImage(image).inspect())),
  );
  const labels: Record<string, string> = kept?.Config.Labels ?? {};
  const fits =
    base !== undefined &&
    labels[MADE_FROM_LABEL] === spec.image &&
    labels[MADE_FROM_ID_LABEL] === base.Id &&
    // The owner in the key is only a name, which another installation gives to someone else.
    isOfInstallation(labels, spec.installation);
  if (!fits || isOlder(labels[KEPT_LABEL], MAX_AGE_MS)) return undefined;
  // By its id: another session may give the name to something else meanwhile.
  return { image: kept?.Id ?? name, commit: labels[COMMIT_LABEL] ?? "" };
}

/** Labels by which a kept image is found again, and matched to sessions that use the same base image. */
export async function keptLabels(docker: Dockerode, spec: SandboxSpec): Promise<Record<string, string>> {
  const base = await docker.getImage(spec.image).inspect();
  return {
    [KEPT_LABEL]: new Date().toISOString(),
    [MADE_FROM_LABEL]: spec.image,
    [MADE_FROM_ID_LABEL]: base.Id,
    [MAKER_LABEL]: spec.sessionId,
    [INSTALLATION_LABEL]: spec.installation ?? "",
    // Also without an owner: the image may be based on one that has the label.
    [OWNER_LABEL]: spec.ownerKey ?? "",
  };
}

export async function keepAs(
  docker: Dockerode,
  spec: SandboxSpec,
  { key, commit }: { readonly key: string; readonly commit?: string | undefined },
): Promise<void> {
  const container = docker.getContainer(sandboxName(spec.sessionId));
  // Also without a commit: the image may be based on one that has the label.
  const labels = { ...(await keptLabels(docker, spec)), [COMMIT_LABEL]: commit ?? "" };
  const changes = Object.entries(labels).map(([name, value]) => `LABEL ${name}=${JSON.stringify(value)}`);
  // No pause is needed: the set-up is over, so nothing is writing.
  await container.commit({ repo: REPOSITORY, tag: key, pause: false, changes });
}

/** Gives a built image the name by which `findKept` finds it. */
export async function nameKept(docker: Dockerode, imageId: string, key: string): Promise<void> {
  await docker.getImage(imageId).tag({ repo: REPOSITORY, tag: key });
}

/** Removes old images, and the oldest if there are too many, but none that a sandbox uses. @returns a line for each */
export async function removeOldKept(docker: Dockerode): Promise<string[]> {
  const images = await keptImages(docker, KEPT_LABEL);
  const byAge = images.toSorted((a, b) => (madeAt(b) < madeAt(a) ? -1 : 1));
  const setUpImages = byAge.filter((image) => nameOf(image)?.startsWith(`${REPOSITORY}:`) === true);
  const counts = new Map<string, number>();
  const surplus = setUpImages.filter((image) => {
    const owner = `${image.Labels?.[INSTALLATION_LABEL] ?? ""} ${image.Labels?.[OWNER_LABEL] ?? ""}`;
    const newer = counts.get(owner) ?? 0;
    counts.set(owner, newer + 1);
    return newer >= MAX_IMAGES || isOlder(madeAt(image), MAX_AGE_MS);
  });
  const unnamed = byAge.filter(
    (image) => nameOf(image) === undefined && isOlder(madeAt(image), MAX_UNNAMED_AGE_MS),
  );
  return removeImages(docker, [...surplus, ...unnamed]);
}

/** The installation's sessions that made what is kept here. */
export async function makersOfKept(docker: Dockerode, installation: string | undefined): Promise<string[]> {
  const images = await keptOf(docker, MAKER_LABEL, installation);
  return [...new Set(images.flatMap(({ Labels: labels }) => labels?.[MAKER_LABEL] ?? []))];
}

/** Removes what a session made, but nothing that a sandbox uses. @returns a line for each */
export async function removeKeptOf(
  docker: Dockerode,
  { sessionId, installation }: OwnSession,
): Promise<string[]> {
  return removeImages(docker, await keptOf(docker, `${MAKER_LABEL}=${sessionId}`, installation));
}

const isOfInstallation = (labels: Readonly<Record<string, string>> | null, installation = ""): boolean =>
  (labels?.[INSTALLATION_LABEL] ?? "") === installation;

const keptOf = async (docker: Dockerode, label: string, installation: string | undefined) =>
  (await keptImages(docker, label)).filter(({ Labels: labels }) => isOfInstallation(labels, installation));

const keptImages = async (docker: Dockerode, label: string): Promise<Dockerode.ImageInfo[]> =>
  (await unless([], () => docker.listImages({ filters: { label: [label] } }))) ?? [];

async function removeImages(docker: Dockerode, images: readonly Dockerode.ImageInfo[]): Promise<string[]> {
  const removed: string[] = [];
  for (const image of images) {
    const name = nameOf(image) ?? image.Id;
    // 409: in use.
    if ((await unless([404, 409], () => docker.getImage(name).remove())) === undefined) continue;
    removed.push(`removed ${name}, which kept what a project's set-up made`);
  }
  return removed;
}

/** An engine before version 25 calls an image without a name `<none>:<none>`. */
const nameOf = ({ RepoTags: names }: Dockerode.ImageInfo): string | undefined =>
  (names ?? []).find((name) => !name.startsWith("<none>"));

const madeAt = (image: Dockerode.ImageInfo): string => image.Labels?.[KEPT_LABEL] ?? "";

const isOlder = (madeAtText: string | undefined, ageMs: number): boolean =>
  !(Date.now() - Date.parse(madeAtText ?? "") < ageMs);
