/** Why a sandbox is not used: failures that say what was kept and what to do. Pure. */
import { fatal } from "../../contract/failures.ts";
import { reasonOf } from "../../contract/reason-of.ts";
import type { SandboxSpec } from "../spec.ts";
import { sandboxName } from "./profile.ts";

export function withoutPython({ image }: SandboxSpec, cause: unknown): Error {
  return fatal(
    "SandboxRefused",
    `the image ${image} has no python3, which the sandbox's supervisor needs; nothing was run. Add python3 to the image, ` +
      "or use one that has it: docs/sandbox.md lists what an image needs",
    cause,
  );
}

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

/** What the engine says with 400 it says again at the next attempt: an unknown runtime, a limit that it does not take. */
export function impossible(error: unknown): Error {
  return fatal(
    "SandboxRefused",
    `the Docker engine cannot make the sandbox as it is configured: ${reasonOf(error)}; nothing was run, and its files are kept. ` +
      "Change its settings (sandbox.image, .runtime, .memory, .cpus, .pids), or the engine",
    error,
  );
}

export function refused(spec: SandboxSpec, differing: readonly string[]): Error {
  return fatal(
    "SandboxRefused",
    `the container ${sandboxName(spec.sessionId)} does not match the expected sandbox profile, so it is not used: ${differing.join("; ")}. ` +
      "Its files are kept on the volume of that name; remove the container, and it will be created again",
  );
}
