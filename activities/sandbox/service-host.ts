/** The port to the services of sandboxes: containers in a sandbox's network namespace. Its adapter: docker/services/. */
import type { ServiceSettings } from "../config/service-settings.ts";

/** The start of a sandbox that a service belongs to: after another one it would be in a namespace that is gone. */
export interface ServiceHome {
  readonly sessionId: string;
  /** As of the sandbox, if that is a session's second one. */
  readonly beside?: string;
  /** As of the session's sandbox: set by the host. */
  readonly installation?: string;
  /** The OCI runtime of the sandbox; absent = the engine's default. */
  readonly runtime?: string | undefined;
  /** Of the sandbox's identity. */
  readonly container: string;
  readonly boot: string;
}

export interface ServiceState {
  readonly name: string;
  /** The engine's id of its container, short. */
  readonly container: string;
  readonly status: "created" | "running" | "ended";
  /** How it ended, in words; undefined while it runs. */
  readonly ending?: string;
}

/** A service as it is to be. */
export interface ServiceSpec {
  readonly name: string;
  readonly settings: ServiceSettings;
  /** Its place in the order of starts, from 0. */
  readonly position: number;
}

interface StartedService {
  readonly container: string;
  /** False if it ran already. */
  readonly wasStarted: boolean;
  /** Its ports: those of its settings, or those that its image declares. */
  readonly ports: readonly number[];
}

export type HealthAnswer = "passed" | "none" | { readonly failed: string };

export interface ServiceHost {
  /**
   * Pulls the service's image if the engine does not have it. @returns the ports that the image declares
   * @throws ImageMissing (fatal), SandboxUnavailable (retryable)
   */
  image(service: ServiceSpec, signal: AbortSignal): Promise<readonly number[]>;
  /**
   * Starts the service, or adopts the one of this start. One of an earlier start is replaced: its fresh data is gone. Idempotent.
   * @param files by path in the service; asked for only if its container is created
   * @returns how it was started, or why its program could not be
   * @throws SandboxRefused (fatal) if it differs from the profile, ImageMissing (fatal), SandboxUnavailable (retryable)
   */
  start(
    home: ServiceHome,
    service: ServiceSpec,
    files: () => Promise<Readonly<Record<string, Uint8Array>>>,
  ): Promise<StartedService | { readonly failed: string }>;
  /** Starts it once more with the data that it has. @returns false if it has no container of this start */
  restart(home: ServiceHome, name: string): Promise<boolean>;
  /** The services that have a container of this start. */
  states(home: ServiceHome): Promise<readonly ServiceState[]>;
  /** Runs its health test once; `none` if neither its settings nor its image have one. */
  test(home: ServiceHome, service: ServiceSpec): Promise<HealthAnswer>;
  /** The kept part of its log, at most 1 MB; undefined if it has no container. @param lines only the last ones */
  log(home: ServiceHome, name: string, lines?: number): Promise<string | undefined>;
}
