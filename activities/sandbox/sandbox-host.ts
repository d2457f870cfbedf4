/** The port to a host of sandboxes. Two adapters: Docker (docker/docker.ts) and the tests' in-process one. */
import type { Sandbox } from "./sandbox.ts";
import type { SandboxSpec } from "./spec.ts";

export interface SandboxHost {
  /** Name of the host, for the ledger and the task queue. */
  readonly name: string;
  /**
   * The session's running sandbox: adopts an existing one, starts a stopped one, or creates it.
   * Idempotent; concurrent callers get the same sandbox.
   * @throws SandboxUnavailable (retryable) when the engine does not answer, SandboxRefused (fatal) when the sandbox
   * differs from the profile, ImageMissing (fatal).
   */
  open(spec: SandboxSpec, signal?: AbortSignal): Promise<Sandbox>;
  /** Removes container and volume. It is not an error when the session has no sandbox. */
  remove(sessionId: string): Promise<void>;
  /** Sessions that have a container or a volume here, in any state, by label. @throws SandboxUnavailable */
  sessions(): Promise<readonly string[]>;
  /** Removes what sandboxes of this host shared and none uses any more. @returns a line for each */
  removeUnused(): Promise<readonly string[]>;
  /** What set-ups of projects made outside the workspace, by a key of what they depend on. Absent if none is kept. */
  readonly setUps?: KeptSetUps;
  /** Identity of the session's volume on this host, as in `Sandbox.identity`; undefined if there is none. */
  volume(sessionId: string): Promise<string | undefined>;
  /** Closes open streams; sandboxes stay. */
  close(): Promise<void>;
}

/** Images on a host: what set-ups of projects made, and what Dockerfiles are built to. */
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
