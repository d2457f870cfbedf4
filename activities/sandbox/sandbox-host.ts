/** The port to a host of sandboxes. Two adapters: Docker (docker/docker.ts) and the tests' in-process one. */
import type { KeptSetUps } from "./kept-set-ups.ts";
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
