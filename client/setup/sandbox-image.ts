/** The image in which commands run: existing, built from the Dockerfile, or created without an image registry. */
import { fileURLToPath } from "node:url";
import type Dockerode from "dockerode";
import { cutChars } from "../../activities/text/cut.ts";
import { DEFAULT_IMAGE, FULL_IMAGE } from "../../activities/config/sandbox-settings.ts";
import { type Say, slowly } from "./progress.ts";
import { registriesOfMachine } from "../registries/machine-registries.ts";
import { bootstrapImage, bootstrapObstacle, followProgress } from "./sandbox-image/bootstrap-image.ts";
import { ServiceMissing } from "../../temporal/service-missing.ts";
import { reasonOf } from "../../activities/contract/errors.ts";
import { definedFields } from "../console/format.ts";

/** The Dockerfile's base image. */
const BASE_IMAGES = ["debian:trixie-slim", "node:24-trixie-slim"];
const CONTEXT = ["Dockerfile", "packages.txt", "packages-full.txt", "setup.sh"];
/** Time to wait for a registry's first byte; an unreachable registry often never answers. */
const REGISTRY_TIMEOUT_MS = 15_000;

export interface SandboxImageOptions {
  readonly docker: Dockerode;
  readonly tag: string;
  readonly say: Say;
  /** False keeps mmdebstrap from being installed. Default: true unless LONGHAUL_NO_INSTALL=1. */
  readonly mayInstall?: boolean;
}

/**
 * Returns once the image is there. Our own tag is built (`docker build`), or made with mmdebstrap if no registry
 * answers; any other is pulled.
 * @throws ServiceMissing with what was tried and one way to fix it
 */
export async function ensureSandboxImage(options: SandboxImageOptions): Promise<void> {
  const { docker, tag, say } = options;
  if (await isThere(docker, tag)) return;
  const full = tag === FULL_IMAGE;
  if (tag !== DEFAULT_IMAGE && !full) {
    const trouble = await pull(docker, tag, say);
    if (trouble !== undefined) throw missing(tag, trouble, `docker pull ${tag}, or unset SANDBOX_IMAGE`);
    return;
  }
  const trouble = await pullMissing(docker, BASE_IMAGES, say);
  if (trouble === undefined) {
    await slowly(say, `Building the sandbox image ${tag}`, () => build(docker, tag, full));
    return;
  }
  const mayInstall = options.mayInstall ?? process.env["LONGHAUL_NO_INSTALL"] !== "1";
  const obstacle = bootstrapObstacle(mayInstall);
  if (obstacle !== undefined) {
    const variant = full ? "--build-arg VARIANT=full " : "";
    const fix = `With a registry: docker build ${variant}-t ${tag} client/setup/sandbox-image. Without one, as root on Debian: apt-get install mmdebstrap, then try again.`;
    throw missing(tag, `no image registry answers (${trouble}), and ${obstacle}`, fix);
  }
  say(`No image registry answers (${trouble}): making the sandbox image from Debian packages.`);
  await bootstrapImage({ docker, tag, say, mayInstall, full });
}

/** @returns why the first missing image could not be pulled, or undefined if all images exist */
async function pullMissing(
  docker: Dockerode,
  tags: readonly string[],
  say: Say,
): Promise<string | undefined> {
  for (const tag of tags) {
    const trouble = (await isThere(docker, tag)) ? undefined : await pull(docker, tag, say);
    if (trouble !== undefined) return trouble;
  }
  return undefined;
}

async function isThere(docker: Dockerode, tag: string): Promise<boolean> {
  try {
    await docker.getImage(tag).inspect();
    return true;
  } catch (error) {
    if (error instanceof Error && "statusCode" in error && error.statusCode === 404) return false;
    throw error;
  }
}

/** @returns why it could not be pulled, or undefined */
async function pull(docker: Dockerode, tag: string, say: Say): Promise<string | undefined> {
  const silence = new AbortController();
  const timer = setTimeout(() => silence.abort(new Error("no response")), REGISTRY_TIMEOUT_MS);
  try {
    const progress = await docker.pull(tag, { abortSignal: silence.signal });
    clearTimeout(timer);
    await slowly(say, `Pulling ${tag}`, () => followProgress(docker, progress));
    return undefined;
  } catch (error) {
    return firstLine(silence.signal.aborted ? silence.signal.reason : error);
  } finally {
    clearTimeout(timer);
  }
}

async function build(docker: Dockerode, tag: string, full: boolean): Promise<void> {
  const context = fileURLToPath(new URL("sandbox-image", import.meta.url));
  const { registries, certificates } = registriesOfMachine(process.env);
  const { npm, pip } = registries;
  const buildargs = definedFields({
    VARIANT: full ? "full" : undefined,
    NPM_CONFIG_REGISTRY: npm?.[0],
    PIP_INDEX_URL: pip?.[0],
    CERTIFICATES: certificates,
  });
  await followProgress(
    docker,
    await docker.buildImage({ context, src: CONTEXT }, { t: tag, buildargs, forcerm: true }),
  );
}

function missing(tag: string, reason: string, fix: string): ServiceMissing {
  return new ServiceMissing({
    service: "Sandbox image",
    address: tag,
    problem: `${tag} is not available`,
    reason,
    fix,
  });
}

const firstLine = (error: unknown): string => cutChars(reasonOf(error).split("\n", 1)[0] ?? "", 200);
