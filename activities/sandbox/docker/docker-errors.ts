/** What the engine's answers mean (its 304, 404 and 409 are states, not errors), and why a sandbox is not used. */
import { ApplicationFailure } from "@temporalio/common";
import type Dockerode from "dockerode";
import { isNetworkTrouble, passes, reasonOf, theirWords } from "../../contract/errors.ts";
import { fatal, retryable } from "../../contract/failures.ts";
import type { SandboxSpec } from "../sandbox-host.ts";

/** HTTP status of the engine's answer; undefined if it did not answer. */
export function statusOf(error: unknown): number | undefined {
  return error instanceof Error && "statusCode" in error && typeof error.statusCode === "number"
    ? error.statusCode
    : undefined;
}

/** Runs `call`; gives undefined if the engine answers one of `states`. @throws SandboxUnavailable (retryable) */
export async function unless<T>(states: readonly number[], call: () => Promise<T>): Promise<T | undefined> {
  try {
    return await call();
  } catch (error) {
    const status = statusOf(error);
    if (status !== undefined && states.includes(status)) return undefined;
    if (error instanceof ApplicationFailure) throw error;
    throw unavailable(error);
  }
}

/** What the engine's failure means: worth another attempt where it passes by itself, and else told at once. */
export function unavailable(error: unknown): Error {
  const status = statusOf(error);
  const message = theirWords(reasonOf(error));
  const passesBy = status === undefined ? isEngineAway(error) : passes.engine(status);
  if (!passesBy)
    return fatal(
      "SandboxRefused",
      `the Docker engine ${status === undefined ? "could not be asked" : "refused"}: ${message}; files and the conversation are kept. ` +
        "It was not tried again, because waiting does not change that; when it is mended, send a message to go on",
      error,
    );
  return retryable(
    "SandboxUnavailable",
    status === undefined
      ? `the Docker engine does not answer (${message}); files and sessions are kept; start it, and the task continues by itself`
      : `the Docker engine refused: ${message}; the request will be retried`,
    { cause: error },
  );
}

/** Its socket's file comes back with it. What a broken connection leaves of an answer is no JSON. */
const isEngineAway = (error: unknown): boolean =>
  isNetworkTrouble(error, { ofSocket: true }) || error instanceof SyntaxError;

function withoutPython({ image }: SandboxSpec, cause: unknown): Error {
  return fatal(
    "SandboxRefused",
    `the image ${image} has no python3, which the sandbox's supervisor needs; nothing was run. Add python3 to the image, ` +
      "or use one that has it: docs/sandbox.md lists what an image needs",
    cause,
  );
}

function ofOtherArchitecture(
  { image }: SandboxSpec,
  { has, runs }: { readonly has: string; readonly runs: string },
  cause: unknown,
): Error {
  return fatal(
    "SandboxRefused",
    `the image ${image} is built for ${has}, this Docker engine runs ${runs}, and nothing here emulates ${has}; nothing was run. ` +
      `Build or pull the image for ${runs}, or install emulation (binfmt) on the engine's host`,
    cause,
  );
}

/** Why no program of the image ran. */
export async function cannotStart(docker: Dockerode, spec: SandboxSpec, cause: unknown): Promise<Error> {
  const [image, engine] = await Promise.all([
    unless([404], () => docker.getImage(spec.keptImage ?? spec.image).inspect()),
    unless([], () => docker.version()),
  ]);
  const [has, runs] = [image?.Architecture, engine?.Arch];
  if (has !== undefined && runs !== undefined && has !== runs)
    return ofOtherArchitecture(spec, { has, runs }, cause);
  return withoutPython(spec, cause);
}

export const imageMissing = ({ image }: SandboxSpec, cause?: unknown): Error =>
  fatal(
    "ImageMissing",
    `the sandbox image ${image} does not exist on this Docker host; nothing was run; build it (npm start does) or set SANDBOX_IMAGE`,
    cause,
  );

export function unguarded(gaps: readonly string[], guardImage: string): Error {
  return fatal(
    "SandboxUnguarded",
    `The sandbox is not isolated as required, so nothing was run in it: ${gaps.join("; ")}. Its files are kept. ` +
      `The firewall runs nft from the image ${guardImage} (LONGHAUL_GUARD_IMAGE); seccomp and capabilities are set by ` +
      "the Docker engine. Fix that, or choose sandbox.network: none (for the network), or sandbox.guard: best-effort",
  );
}

export function withoutGuard(guardImage: string): Error {
  return fatal(
    "ImageMissing",
    `the image ${guardImage} does not exist on this Docker host, and the sandbox's firewall is loaded from it, so nothing was run; ` +
      "its files are kept. Build it (npm start does), or set LONGHAUL_GUARD_IMAGE to an image with python3 and nft",
  );
}

/** A 400 from the engine is permanent: an unknown runtime, or a limit that it does not accept. */
export function impossible(error: unknown): Error {
  return fatal(
    "SandboxRefused",
    `the Docker engine cannot make the sandbox as it is configured: ${reasonOf(error)}; nothing was run, and its files are kept. ` +
      "Change its settings (sandbox.image, .runtime, .memory, .cpus, .pids), or the engine",
    error,
  );
}

export function containerUnavailable(name: string, why: string): Error {
  return fatal(
    "ContainerUnavailable",
    `No session can work in the container ${name}: ${why}. Nothing in it was changed, and what was said is kept.`,
  );
}

export function unlikeProfile(name: string, differing: readonly string[]): Error {
  return fatal(
    "SandboxRefused",
    `the container ${name} does not match the expected sandbox profile, so it is not used: ${differing.join("; ")}. ` +
      "Its files are kept on the volume of that name; remove the container, and it will be created again",
  );
}
