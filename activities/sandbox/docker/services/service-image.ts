/** The images of services: pulled by the engine when it lacks them, and what they declare. */
import type Dockerode from "dockerode";
import { reasonOf } from "../../../contract/errors.ts";
import { fatal } from "../../../contract/failures.ts";
import { shorten } from "../../../text/cut.ts";
import { abortable } from "../../shared-work.ts";
import { unless } from "../docker-errors.ts";
import type { ServiceImage } from "./service-profile.ts";

const MAX_REASON_CHARS = 300;

/** @throws ImageMissing (fatal) with the registry's reason; SandboxUnavailable (retryable); the signal's reason */
export async function takeImage(
  docker: Dockerode,
  image: string,
  signal: AbortSignal,
  say: (line: string) => void,
): Promise<void> {
  if ((await unless([404], () => docker.getImage(image).inspect())) !== undefined) return;
  say(`service: pulling ${image}`);
  try {
    const progress = await docker.pull(image, { abortSignal: signal });
    await abortable(
      new Promise<void>((resolve, reject) => {
        docker.modem.followProgress(progress, (error) => (error ? reject(error) : resolve()));
      }),
      signal,
    );
  } catch (error) {
    signal.throwIfAborted();
    throw imageNotThere(image, error);
  }
}

const imageNotThere = (image: string, cause: unknown): Error =>
  fatal(
    "ImageMissing",
    `the image ${image} of a service is not on this Docker host, and the engine cannot pull it: ${shorten(reasonOf(cause), MAX_REASON_CHARS)}. ` +
      "Nothing was asked of a model. Pull or build the image on the host, or name another one",
    cause,
  );

interface ServiceImageFacts extends ServiceImage {
  /** TCP ports that it declares. */
  readonly ports: readonly number[];
  /** Its health test, as Docker writes it. */
  readonly test: readonly string[] | undefined;
  readonly shell: readonly string[];
}

interface ImageConfig {
  readonly Env?: readonly string[] | null;
  readonly Volumes?: object | null;
  readonly ExposedPorts?: object | null;
  readonly User?: string;
  readonly Healthcheck?: { readonly Test?: readonly string[] | null } | null;
  readonly Shell?: readonly string[] | null;
}

/** @throws ImageMissing (fatal) if it was removed meanwhile */
export async function serviceImageFacts(docker: Dockerode, image: string): Promise<ServiceImageFacts> {
  const inspected = await unless([404], () => docker.getImage(image).inspect());
  if (inspected === undefined) throw imageNotThere(image, new Error("it was removed"));
  const config: ImageConfig = inspected.Config;
  return {
    environment: config.Env ?? [],
    volumes: Object.keys(config.Volumes ?? {})
      .map((folder) => folder.replace(/(?<=.)\/+$/, ""))
      .sort(),
    user: config.User ?? "",
    ports: Object.keys(config.ExposedPorts ?? {})
      .filter((port) => !port.endsWith("/udp"))
      .map((port) => Number.parseInt(port, 10)),
    test: config.Healthcheck?.Test ?? undefined,
    shell: config.Shell ?? ["/bin/sh", "-c"],
  };
}

/** As Docker reads a health test. @returns undefined if there is none */
export function testArguments(
  test: readonly string[] | undefined,
  shell: readonly string[],
): string[] | undefined {
  const [kind, ...rest] = test ?? [];
  if (kind === "CMD") return rest;
  return kind === "CMD-SHELL" ? [...shell, ...rest] : undefined;
}
