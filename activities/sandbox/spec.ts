/** What a sandbox is made to: its limits, its network and what its commands find. Types, and the defaults' source. */
import type { AttachedContainer } from "../config/container-settings.ts";

/** The settings of a session's sandbox. Source of the defaults: requirement 5, measured 2026-11, docs/decisions. */
export interface SandboxSpec {
  readonly sessionId: string;
  readonly image: string;
  readonly network: "bridge" | "none" | "listed";
  readonly memoryBytes: number;
  /** The workspace cannot be written to. */
  readonly readOnly?: true;
  readonly cpus: number;
  readonly pids: number;
  /** Addresses or prefixes a sandbox on the bridge may reach although they are private; default none. */
  readonly allow?: readonly string[];
  /** What happens if the firewall or the isolation of a sandbox fails; default `required`: it is refused. */
  readonly guard?: "required" | "best-effort";
  /** Limits what is written to the host's disk; absent = unlimited. */
  readonly disk?: DiskBound;
  /** The engine's name of an OCI runtime; absent = its default. */
  readonly runtime?: string;
  /** Names the volume of package caches that it shares with other sessions; absent = none. */
  readonly cache?: string;
  /** The image that it is made from, with what a set-up added to `image`; absent = `image` itself. */
  readonly keptImage?: string;
  /** What its commands find of the person's machine. */
  readonly settings?: SandboxSettings;
  /** A running container that someone else owns, to work in as it is: of the fields above, only variables apply. */
  readonly container?: AttachedContainer;
}

/** Where the shared caches are: of the default image's home, whose owner a new volume takes over. */
export const CACHE_FOLDER = "/home/agent/.cache";

export interface SandboxSettings {
  /** Variables, on top of the sandbox's fixed environment. */
  readonly env: Readonly<Record<string, string>>;
  /** Files of the sandbox's root by path, readable for all. */
  readonly files: Readonly<Record<string, string>>;
  /** Certificate authorities to trust besides the image's own, in PEM. */
  readonly certificates?: string;
  /** `host:port` that may be reached, on the bridge, even if its address is private; never a metadata service's. */
  readonly registries: readonly string[];
}

export interface DiskBound {
  /** Of everything that tools can write to together, workspace and home included; one file alone can never be larger. */
  readonly bytes: number;
  /** How much must stay free on the host. */
  readonly freeBytes: number;
}
