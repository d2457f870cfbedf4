/** The port to a host of sandboxes, and what a session asks of it. Two adapters: Docker (docker/docker.ts) and the tests' in-process one. */
import { createHash } from "node:crypto";
import type { RunConfig } from "../config/agent-config.ts";
import type { AttachedContainer } from "../config/sandbox-settings.ts";
import { isReadOnly } from "../config/review-settings.ts";
import { cacheVariables, registrySettings } from "../config/registry-settings.ts";
import { sharedSkillFiles } from "../config/skills.ts";
import { sandboxServices } from "../config/service-settings.ts";
import type { BaseSetUp, Sandbox } from "./sandbox.ts";
import type { ServiceHost } from "./service-host.ts";

export interface SandboxHost {
  /** Name of the host, for the ledger and the task queue. */
  readonly name: string;
  /** What the session's sandbox is called here, also before it is made. Absent: as the session. */
  nameOf?(sessionId: string): string;
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
  /**
   * Removes container and volume, and those of its services; of the sandbox beside it, too. It is not an error when there is none.
   * @param options.keeps what stays: the kept data of its services
   * @param options.only the session's own sandbox stays, and the one beside it is removed
   */
  remove(sessionId: string, options?: Removal): Promise<void>;
  /**
   * Stops the session's sandbox and removes its services, whose kept data stays; `open` starts it again. Idempotent.
   * @returns false if there is none, or it cannot be kept. Absent if this host keeps none.
   */
  park?(sessionId: string): Promise<boolean>;
  /**
   * What the session's sandbox takes on the engine's disk besides its workspace, as its home folder, in bytes; undefined if there is
   * none. Absent if this host keeps none.
   */
  ownBytes?(sessionId: string): Promise<number | undefined>;
  /** The size of the disk that the engine keeps sandboxes on, in bytes. Absent if this host keeps none. */
  diskBytes?(): Promise<number>;
  /** Sessions that have a container or a volume here, in any state, by label. @throws SandboxUnavailable */
  sessions(): Promise<readonly string[]>;
  /** Removes what this host's sandboxes shared and no longer use. @returns a line for each */
  removeUnused(): Promise<readonly string[]>;
  /** Checkouts that its sessions share. Absent if this host keeps none. */
  readonly bases?: Bases;
  /** Cached results of set-ups, by a hash of what they depend on. Absent if this host keeps none. */
  readonly setUps?: KeptSetUps;
  /** Services beside its sandboxes. Absent if this host has none. */
  readonly services?: ServiceHost;
  /**
   * Identity of the session's volume on this host, as in `Sandbox.identity`; undefined if there is none.
   * @param options.only of the sandbox beside its own
   */
  volume(sessionId: string, options?: Pick<Removal, "only">): Promise<string | undefined>;
  /** Closes open streams; sandboxes stay. */
  close(): Promise<void>;
}

/** What is in a workspace that becomes a base. */
export interface FilledBase {
  /** What its set-up depends on, if it ran one: then sessions get what is in the sandbox's home folder, too. */
  readonly setUp?: BaseSetUp | undefined;
  /** What the workspace takes on the disk. */
  readonly bytes: number;
}

/** A base that is made, and its use. */
export interface KeptBase {
  readonly key: string;
  /** What it takes on the engine's disk, its home folder included. */
  readonly bytes: number;
  /** Whose workspaces stand on it, also while they have no container. */
  readonly sessions: readonly string[];
}

interface Removal {
  readonly keeps?: "service-data";
  readonly only?: "beside";
}

/**
 * Workspaces that many sessions begin with, each under a key: a session sees one as its own, and what it changes is kept apart. A base
 * is never written again once it is finished.
 */
export interface Bases {
  /** Why this host cannot put a session's changes over a base; undefined if it can. Tried once with the image. */
  unable(image: string): Promise<string | undefined>;
  isMade(key: string): Promise<boolean>;
  /** What the set-up that a base has depends on; undefined if it has none, or what that made in the home folder is gone. */
  setUp(key: string): Promise<BaseSetUp | undefined>;
  /** The image by its id; undefined if it is not here. */
  imageId(image: string): Promise<string | undefined>;
  /**
   * Makes a base, or takes up one that was left half made. Call it under a lock: there is one sandbox for all that make it.
   * @param fill gets a sandbox whose workspace becomes the base
   */
  make(
    key: string,
    spec: Omit<SandboxSpec, "sessionId">,
    fill: (sandbox: Sandbox) => Promise<FilledBase>,
    signal: AbortSignal,
  ): Promise<void>;
  /** Those that are made here for this installation's sessions. */
  list(): Promise<readonly KeptBase[]>;
  /** @returns false, with nothing changed, if a session stands on it */
  forget(key: string): Promise<boolean>;
}

/** Images cached on a host: results of projects' set-ups, and images built from Dockerfiles. */
export interface KeptSetUps {
  /** Recreates the session's sandbox on its files, with the kept set-up; undefined, with nothing changed, if there is none. */
  take(spec: SandboxSpec, key: string, request?: TakeOrder): Promise<Sandbox | undefined>;
  /** Keeps what the session's sandbox has outside its workspace. @param commit what the workspace had when it was made */
  keep(spec: SandboxSpec, key: string, commit?: string): Promise<void>;
  /**
   * Builds an image from a Dockerfile, which `take` then finds by the key. The session's sandbox must exist: the build uses its
   * network. Aborting ends the build.
   */
  build(spec: SandboxSpec, key: string, request: BuildOrder, signal: AbortSignal): Promise<BuildResult>;
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

/** Whose a sandbox is. */
export interface OwnSession {
  readonly sessionId: string;
  /** The installation that has the session's row: set by the host, which serves one; absent in trials, which have no row. */
  readonly installation?: string;
  /** Key of the base that its workspace becomes: it is no session's. */
  readonly makes?: string;
  /** The session beside whose own sandbox this one is: `sessionId` is then only a name for it. */
  readonly beside?: string;
}

/** Whose the second sandbox of a session is: it has the session's label, goes with it, and shares nothing else with the first. */
export const besideSession = (sessionId: string): Required<Pick<OwnSession, "sessionId" | "beside">> => ({
  sessionId: `beside:${sessionId}`,
  beside: sessionId,
});

/** A session's sandbox: its limits, its network and the settings of its commands. Source of the defaults: requirement 5, measured 2026-11, docs/decisions. */
export interface SandboxSpec extends OwnSession {
  readonly image: string;
  readonly network: "bridge" | "none" | "listed";
  readonly memoryBytes: number;
  /** The workspace cannot be written to. */
  readonly readOnly?: true;
  /** Key of the base that its workspace begins with, which must be made; absent = it begins empty. */
  readonly base?: string;
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
  /** A hash of who started the session: what its set-up keeps counts as theirs; absent = nobody's. */
  readonly ownerKey?: string;
  /** The image that it is made from, with what a set-up added to `image`; absent = `image` itself. */
  readonly keptImage?: string;
  /** Host names of its services, which all are its own loopback address. */
  readonly services?: readonly string[];
  /** Settings taken from the user's machine for its commands. */
  readonly settings?: SandboxSettings;
  /** Keys that the session names; the host knows what they are. */
  readonly keys?: readonly string[];
  /** A running container that someone else owns, used as it is: of the fields above, only variables apply. */
  readonly container?: AttachedContainer;
}

/** The folder of shared caches, in the default image's home: a new volume gets the owner of that folder. */
export const CACHE_FOLDER = "/home/agent/.cache";

export interface SandboxSettings {
  /** Variables, on top of the sandbox's fixed environment. */
  readonly env: Readonly<Record<string, string>>;
  /** Those of `env` that the session itself sets: they go before those of its keys. */
  readonly own?: Readonly<Record<string, string>>;
  /** Files by absolute path in the sandbox, readable by everyone; below `~/` the tools' own, unless they have another one. */
  readonly files: Readonly<Record<string, string>>;
  /** Certificate authorities to trust besides the image's own, in PEM. */
  readonly certificates?: string;
  /** `host:port` that may be reached on the bridge even at a private address, but never a metadata service. */
  readonly registries: readonly string[];
}

/** Whether a sandbox has the egress proxy: as its only way out, or besides the bridge, for its keys. */
export const hasEgress = ({ network, keys }: Pick<SandboxSpec, "network" | "keys">): boolean =>
  network === "listed" || (network === "bridge" && (keys ?? []).length > 0);

export interface DiskBound {
  /** Total of everything that tools can write, workspace and home included; no single file can be larger. */
  readonly bytes: number;
  /** How much must stay free on the host. */
  readonly freeBytes: number;
}

/** A session, as far as its sandbox depends on it. */
export interface SandboxSession {
  readonly id: string;
  readonly config: Pick<RunConfig, "sandbox" | "plan" | "reviews"> & Partial<Pick<RunConfig, "skills">>;
  /** Who started it: package caches are not shared between persons. */
  readonly owner?: string | undefined;
}

/**
 * The sandbox that a session's settings ask for.
 * @param base key of the base that its workspace stands on
 */
export function sandboxSpec(
  { id: sessionId, config, owner }: SandboxSession,
  base?: string | null,
): SandboxSpec {
  const { sandbox, skills } = config;
  const { image, network, allow, guard, cpus, pids, runtime } = sandbox;
  const { env, files, hosts } = registrySettings(sandbox);
  const { certificates, cache: cacheName } = sandbox.inherited ?? {};
  const cache = cacheName === undefined ? undefined : ofOwner(cacheName, owner);
  const services = Object.keys(sandboxServices(sandbox));
  return {
    sessionId,
    image,
    network,
    allow,
    guard,
    cpus,
    pids,
    base: base ?? undefined,
    readOnly: isReadOnly(config) ? true : undefined,
    memoryBytes: bytesOf(sandbox.memory),
    disk: { bytes: bytesOf(sandbox.disk), freeBytes: bytesOf(sandbox.diskFree) },
    runtime,
    container: sandbox.container,
    cache,
    services: services.length === 0 ? undefined : services,
    ownerKey: owner === undefined ? undefined : ofOwner("kept set-ups", owner),
    keys: (sandbox.keys ?? []).length === 0 ? undefined : sandbox.keys,
    settings: {
      env: { ...(cache === undefined ? {} : cacheVariables(CACHE_FOLDER)), ...env, ...sandbox.env },
      own: sandbox.env,
      files: { ...files, ...sharedSkillFiles(skills) },
      certificates,
      registries: hosts,
    },
  };
}

/**
 * A key of what is kept for later sessions, which only those of the same owner have. A client names the key, and several persons
 * have the same one behind one server; the owner is the worker's knowledge.
 */
export const ofOwner = (key: string, owner: string | undefined): string =>
  owner === undefined
    ? key
    : createHash("sha256")
        .update(JSON.stringify([owner, key]))
        .digest("hex")
        .slice(0, 16);

function bytesOf(size: string): number {
  return Number.parseInt(size, 10) * (size.endsWith("g") ? 1024 ** 3 : 1024 ** 2);
}
