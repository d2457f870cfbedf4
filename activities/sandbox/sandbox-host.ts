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
  /**
   * Whether its image can be a sandbox, before anything is paid for; an engine that is away is told by `open`. Absent if all can.
   * @throws SandboxRefused, ImageMissing (fatal)
   */
  refuseUnfit?(spec: SandboxSpec): Promise<void>;
  /** Removes container and volume. It is not an error when the session has no sandbox. */
  remove(sessionId: string): Promise<void>;
  /** Sessions that have a container or a volume here, in any state, by label. @throws SandboxUnavailable */
  sessions(): Promise<readonly string[]>;
  /** Removes what this host's sandboxes shared and no longer use. @returns a line for each */
  removeUnused(): Promise<readonly string[]>;
  /** Cached results of set-ups, by a hash of what they depend on. Absent if this host keeps none. */
  readonly setUps?: KeptSetUps;
  /** Identity of the session's volume on this host, as in `Sandbox.identity`; undefined if there is none. */
  volume(sessionId: string): Promise<string | undefined>;
  /** Closes open streams; sandboxes stay. */
  close(): Promise<void>;
}

/** Images cached on a host: results of projects' set-ups, and images built from Dockerfiles. */
export interface KeptSetUps {
  /** Recreates the session's sandbox on its files, with the kept set-up; undefined, with nothing changed, if there is none. */
  take(spec: SandboxSpec, key: string, order?: TakeOrder): Promise<Sandbox | undefined>;
  /** Keeps what the session's sandbox has outside its workspace. @param commit what the workspace had when it was made */
  keep(spec: SandboxSpec, key: string, commit?: string): Promise<void>;
  /**
   * Builds an image from a Dockerfile, which `take` then finds by the key. The session's sandbox must exist: the build uses its
   * network. Aborting ends the build.
   */
  build(spec: SandboxSpec, key: string, order: BuildOrder, signal: AbortSignal): Promise<BuildResult>;
  /** The sessions that made what is kept here. */
  makers(): Promise<readonly string[]>;
  /** Removes what a session made, unless a sandbox uses it. @returns a line for each */
  forget(sessionId: string): Promise<readonly string[]>;
}

interface TakeOrder {
  readonly signal?: AbortSignal | undefined;
  /** Asked before anything is changed; gets an empty text if no commit was given. */
  readonly accepts?: ((commit: string) => Promise<boolean>) | undefined;
}

export interface BuildOrder {
  /** A tar. */
  readonly context: AsyncIterable<Uint8Array>;
  /** The Dockerfile's name in the context. */
  readonly dockerfile: string;
  readonly args: Readonly<Record<string, string>>;
  readonly target?: string | undefined;
  readonly timeoutMs: number;
  /** Names whose builds, with which settings, share their layers. Others must not know it. */
  readonly layers: string;
  /** Why the operator's policy refuses an image that the build would take; undefined if it may. */
  readonly refuseImage: (image: string) => string | undefined;
}

export interface BuildResult {
  readonly output: string;
  /** Why there is no image. */
  readonly failed?: string;
}
