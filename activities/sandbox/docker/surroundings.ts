/** What a container inherits from its engine and its image: read from the engine and cached. */
import type Dockerode from "dockerode";
import type { ContainerInspectInfo } from "dockerode";
import { unless } from "./docker-errors.ts";
import { cachedFor } from "./cached-for.ts";
import type { Surroundings } from "./profile-differences.ts";
import { imageVolumes } from "./profile.ts";
import { MADE_FROM_LABEL } from "./set-up-images.ts";

/** Cached no longer than this: a restarted engine may have other settings. */
const ENGINE_MS = 60_000;

interface EngineFacts {
  readonly DefaultRuntime?: string;
  readonly SecurityOptions?: readonly string[] | null;
}

type ImageFacts = Pick<Surroundings, "imageEnvironment" | "madeFrom" | "image" | "volumes">;

/** @returns a function that gives one container's surroundings; it throws SandboxUnavailable (retryable) */
export function createSurroundings(
  docker: Dockerode,
  egressVolume: string,
): (found: ContainerInspectInfo) => Promise<Surroundings> {
  const engineFacts = cachedFor(ENGINE_MS, () => unless([], () => docker.info() as Promise<EngineFacts>));
  /** By the image's id, which is a hash of its content. */
  const images = new Map<string, ImageFacts>();

  async function imageFacts(id: string): Promise<ImageFacts> {
    const known = images.get(id);
    if (known !== undefined) return known;
    const image = await unless([404], () => docker.getImage(id).inspect());
    const labels: Record<string, string> = image?.Config.Labels ?? {};
    const facts = {
      imageEnvironment: image?.Config.Env ?? [],
      madeFrom: labels[MADE_FROM_LABEL],
      image: image && (image.RepoDigests?.[0] ?? image.Id),
      volumes: imageVolumes(image?.Config.Volumes),
    };
    if (image !== undefined) images.set(id, facts);
    return facts;
  }

  return async (found) => {
    const [facts, image] = await Promise.all([engineFacts(), imageFacts(found.Image)]);
    return {
      defaultRuntime: facts?.DefaultRuntime ?? "runc",
      appArmor: facts?.SecurityOptions?.some((option) => option.startsWith("name=apparmor")) === true,
      ...image,
      egressVolume,
    };
  };
}
