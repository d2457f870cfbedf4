/** The part of the port that keeps images on a host: what set-ups of projects made, and what Dockerfiles are built to. */
import type { Sandbox } from "./sandbox.ts";
import type { SandboxSpec } from "./spec.ts";

export interface KeptSetUps {
  /** Recreates the session's sandbox on its files, with the kept set-up; undefined, with nothing changed, if there is none. */
  take(spec: SandboxSpec, key: string, signal?: AbortSignal): Promise<Sandbox | undefined>;
  /** Keeps what the session's sandbox has outside its workspace. */
  keep(spec: SandboxSpec, key: string): Promise<void>;
  /**
   * Builds an image from a Dockerfile, which `take` then finds by the key. The session's sandbox is there, and its network is what
   * the build has. Aborting ends the build.
   */
  build(spec: SandboxSpec, key: string, order: BuildOrder, signal: AbortSignal): Promise<BuildResult>;
}

export interface BuildOrder {
  /** A tar. */
  readonly context: AsyncIterable<Uint8Array>;
  /** Its name in the context. */
  readonly dockerfile: string;
  readonly args: Readonly<Record<string, string>>;
  readonly target?: string | undefined;
  readonly timeoutMs: number;
}

export interface BuildResult {
  readonly output: string;
  /** Why there is no image. */
  readonly failed?: string;
}
