/**
 * The profile of a sandbox as data: the request that creates it. profile-differences.ts compares existing containers.
 * Capabilities: the supervisor needs SETUID and SETGID to become uid 1000; it does not need KILL, because it takes the tools'
 * effective uid to signal (measured: docs/decisions).
 */
import { createHash } from "node:crypto";
import type { ContainerCreateOptions, ContainerInspectInfo, MountSettings } from "dockerode";
import { cutChars } from "../../text/cut.ts";
import { ownSupervisorSource, PROTOCOL, pythonArguments } from "../agent/sources.ts";
import { CACHE_FOLDER, type OwnSession, type SandboxSpec } from "../sandbox-host.ts";

export const SESSION_LABEL = "longhaul.session";
/** Label of all that is a session's: which installation the session is of, since two on one engine may use one id. */
export const INSTALLATION_LABEL = "longhaul.installation";
/** Label of a sandbox that makes a base, and of its volume, which becomes it: the base's key. */
export const MAKES_LABEL = "longhaul.makes";
/** Label of a session's second sandbox, with the session: its own has none. */
export const BESIDE_LABEL = "longhaul.beside";
/** Label of what stands on a base, or says that it is made: its key. */
export const BASE_LABEL = "longhaul.base";
export const CREATED_LABEL = "longhaul.created";
/** Label of the sandbox's container: its token, which no other sandbox has. */
export const EGRESS_TOKEN_LABEL = "longhaul.egress-token";
/** Name of the proxy's container and volume: with a dot, so that no sandbox has it. */
export const DEFAULT_EGRESS_NAME = "longhaul.egress";
/** Where the proxy's socket is, in its container and, read only, in sandboxes. */
export const EGRESS_FOLDER = "/run/longhaul";
/** Equal to EGRESS_PORT in forwarder.py. */
const EGRESS_PORT = 3128;

interface EgressPlace {
  /** The volume with the proxy's socket. */
  readonly volume: string;
  readonly token: string;
}

/**
 * How a sandbox with `network: listed` finds the egress proxy.
 * Upper-case and lower-case variables, since programs differ in which they read; Node's own fetch and Java use others.
 * @param token the name of its socket there
 */
export function egressEnvironment(token = ""): string[] {
  const at = `http://127.0.0.1:${EGRESS_PORT}`;
  const java = ["http", "https"].map(
    (scheme) => `-D${scheme}.proxyHost=127.0.0.1 -D${scheme}.proxyPort=${EGRESS_PORT}`,
  );
  const inBothCases = (variable: string, value: string) => [
    `${variable}=${value}`,
    `${variable.toLowerCase()}=${value}`,
  ];
  return [
    `LONGHAUL_EGRESS=${token}`,
    ...["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"].flatMap((variable) => inBothCases(variable, at)),
    ...inBothCases("NO_PROXY", "localhost,127.0.0.1,::1"),
    "NODE_USE_ENV_PROXY=1",
    `JAVA_TOOL_OPTIONS=${java.join(" ")} -Dhttp.nonProxyHosts=localhost|127.*`,
  ];
}

/** Label of the container that applies a sandbox's network rules; its value is the session. */
export const GUARD_LABEL = "longhaul.guard";
/** Label of a volume of package caches. */
export const CACHE_LABEL = "longhaul.cache";
export const PROTOCOL_LABEL = "longhaul.protocol";
export const SOURCE_VARIABLE = "LONGHAUL_SUPERVISOR";
/** Which profile a container was made with: a change of it is a newer version's, not tampering. */
export const PROFILE_LABEL = "longhaul.profile";
const NAME_CHARS = 100;
/** Docker's own tools show this many characters of a container's id. */
export const SHORT_ID = 12;

export const ENTRYPOINT = pythonArguments(SOURCE_VARIABLE);

export const CAPABILITIES = ["SETGID", "SETUID"];
/** /tmp counts as the sandbox's memory, so it gets at most 1/TMP_SHARE of that: a full /tmp must not end the tools. */
const TMP_SHARE = 4;
export const NOFILE = 16_384;
export const SHM_BYTES = 64 * 1024 * 1024;
/** The kernel kills a sandbox before the host's services; tools have 1000, so they go first. */
export const OOM_SCORE_ADJ = 500;

/** Name of the session's container and of its volume: the id, cut and with a hash if Docker would not accept it as it is. */
export function sandboxName(sessionId: string): string {
  const plain = sessionId.replaceAll(/[^A-Za-z0-9_.-]/g, "-");
  if (plain === sessionId && plain.length <= NAME_CHARS) return `longhaul-${plain}`;
  const hash = createHash("sha256").update(sessionId).digest("hex").slice(0, 12);
  return `longhaul-${cutChars(plain, NAME_CHARS - 13)}-${hash}`;
}

/** The labels that prove whose something on the engine is; a name, or the session alone, proves nothing. */
export function ownerLabels(owner: OwnSession): Record<string, string> {
  const { installation = "", makes, beside } = owner;
  return {
    [SESSION_LABEL]: labelledSession(owner),
    [INSTALLATION_LABEL]: installation,
    ...(makes === undefined ? {} : { [MAKES_LABEL]: makes }),
    ...(beside === undefined ? {} : { [BESIDE_LABEL]: beside }),
  };
}

/** The session that a sandbox goes with. */
export const labelledSession = ({ sessionId, beside }: OwnSession): string => beside ?? sessionId;

/** Whether labels are those of the session's own sandbox. */
export const isOwnedBy = (
  owner: OwnSession,
  labels: Readonly<Record<string, string>> | null | undefined,
): boolean =>
  Object.entries({ [MAKES_LABEL]: "", [BESIDE_LABEL]: "", ...ownerLabels(owner) }).every(
    ([label, value]) => (labels?.[label] ?? "") === value,
  );

export function sandboxLabels(owner: OwnSession, now: Date): Record<string, string> {
  return {
    ...ownerLabels(owner),
    [CREATED_LABEL]: now.toISOString(),
    [PROTOCOL_LABEL]: String(PROTOCOL),
  };
}

/**
 * The request that creates the session's sandbox.
 * @param places `egress` is required for `network: listed`, `layers` with a base
 */
export function createOptions(
  spec: SandboxSpec,
  now: Date,
  { egress, layers }: Places = {},
): ContainerCreateOptions {
  const options = profileOptions(spec, now, { egress, layers });
  return {
    ...options,
    Env: [
      `${SOURCE_VARIABLE}=${ownSupervisorSource({ hasEgress: egress !== undefined })}`,
      ...(egress === undefined ? [] : egressEnvironment(egress.token)),
    ],
    Labels: { ...options.Labels, [PROFILE_LABEL]: PROFILE },
  };
}

/** Where parts of a sandbox are on the engine. */
export interface Places {
  readonly egress?: EgressPlace | undefined;
  readonly layers?: LayerPlaces | undefined;
}

/** Folders of the engine's host that the kernel stacks. */
export interface LayerPlaces {
  readonly base: string;
  readonly changes: string;
}

function profileOptions(
  spec: SandboxSpec,
  now: Date,
  { egress, layers }: Places = {},
): ContainerCreateOptions {
  return {
    name: sandboxName(spec.sessionId),
    Image: spec.keptImage ?? spec.image,
    User: "0:0",
    Hostname: "box",
    WorkingDir: "/workspace",
    Entrypoint: ENTRYPOINT,
    Cmd: [],
    Labels: {
      ...sandboxLabels(spec, now),
      ...(egress === undefined ? {} : { [EGRESS_TOKEN_LABEL]: egress.token }),
    },
    Healthcheck: { Test: ["NONE"] },
    StopSignal: "SIGTERM",
    StopTimeout: 1,
    HostConfig: {
      Init: true,
      Privileged: false,
      CapDrop: ["ALL"],
      CapAdd: CAPABILITIES,
      SecurityOpt: ["no-new-privileges:true"],
      NetworkMode: networkMode(spec),
      ExtraHosts: serviceHosts(spec),
      Mounts: [
        ...workspaceMounts(spec, sandboxLabels(spec, now), layers),
        ...(egress === undefined
          ? []
          : [{ Type: "volume" as const, Source: egress.volume, Target: EGRESS_FOLDER, ReadOnly: true }]),
        ...(spec.cache === undefined ? [] : [cacheMount(spec.cache)]),
      ],
      Tmpfs: { "/tmp": tmpOptions(spec) },
      PidsLimit: spec.pids,
      Memory: spec.memoryBytes,
      MemorySwap: spec.memoryBytes,
      NanoCpus: nanoCpus(spec),
      ShmSize: SHM_BYTES,
      OomScoreAdj: OOM_SCORE_ADJ,
      Ulimits: [
        { Name: "nofile", Soft: NOFILE, Hard: NOFILE },
        { Name: "core", Soft: 0, Hard: 0 },
      ],
      IpcMode: "private",
      RestartPolicy: { Name: "no" },
      LogConfig: { Type: "none", Config: {} },
      Runtime: spec.runtime,
    },
  };
}

/** What the image declares as volumes and no mount of ours replaces: the engine makes a nameless one for each, which goes with it. */
export const imageVolumes = (declared: object | null | undefined): string[] =>
  Object.keys(declared ?? {})
    .map((folder) => folder.replace(/(?<=.)\/+$/, ""))
    .filter((folder) => !["/workspace", "/tmp", CACHE_FOLDER, EGRESS_FOLDER].includes(folder))
    .sort();

/** With `listed`, as with `none`, the sandbox has only a loopback interface. */
export const networkMode = ({ network }: SandboxSpec): string => (network === "bridge" ? "bridge" : "none");

/** The services beside it are on its own loopback interface; undefined if there are none. */
export const serviceHosts = ({ services = [] }: SandboxSpec): string[] | undefined =>
  services.length === 0 ? undefined : services.map((name) => `${name}:127.0.0.1`);

/** The cache outlives sessions: only its owner removes it (docs/sandbox.md). */
const cacheMount = (cache: string): MountSettings =>
  volumeMount(cacheName(cache), CACHE_FOLDER, { [CACHE_LABEL]: cache });

/** @param labels for the volume if it must be created */
/** Who makes a base: no session, and each installation has its own. */
export const baseMaker = (key: string, installation = ""): OwnSession => ({
  sessionId: `base:${key}:${installation}`,
  installation,
  makes: key,
});

/** The volume of a base is that of the sandbox in which it was made. */
export const baseVolume = (key: string, installation: string | undefined): string =>
  sandboxName(baseMaker(key, installation).sessionId);

/** The volume at /workspace: the session's own, or that of both its layers. */
export const workspaceVolume = ({ sessionId, base }: SandboxSpec): string =>
  base === undefined ? sandboxName(sessionId) : layersName(sessionId);

/** With a dot in a place where no sandbox's name has one. */
export const layersName = (sessionId: string): string =>
  `longhaul.layers-${sandboxName(sessionId).slice("longhaul-".length)}`;

/** Where a sandbox finds the layers of its workspace, for agent/layers.py. */
const BASE_FOLDER = "/run/longhaul-base";
const CHANGES_FOLDER = "/run/longhaul-changes";

/**
 * The kernel's own list of what a session changed. Not `userxattr`: with it, folders of the base could not be renamed (measured
 * 2026-11).
 */
export const layerOptions = ({ base, changes }: LayerPlaces): Record<string, string> => ({
  type: "overlay",
  device: "overlay",
  o: `lowerdir=${base},upperdir=${changes}/up,workdir=${changes}/work,redirect_dir=on`,
});

function workspaceMounts(
  spec: SandboxSpec,
  labels: Record<string, string>,
  layers: LayerPlaces | undefined,
): MountSettings[] {
  const own = sandboxName(spec.sessionId);
  // Recreates the volume if it was removed in between.
  const workspace = {
    ...volumeMount(workspaceVolume(spec), "/workspace", labels, layers && layerOptions(layers)),
    ReadOnly: spec.readOnly === true,
  };
  if (spec.base === undefined) return [workspace];
  const base = baseVolume(spec.base, spec.installation);
  return [
    workspace,
    { ...volumeMount(own, CHANGES_FOLDER, labels), ReadOnly: true },
    {
      ...volumeMount(base, BASE_FOLDER, ownerLabels(baseMaker(spec.base, spec.installation))),
      ReadOnly: true,
    },
  ];
}

/** What is mounted for the layers, as profile-differences.ts lists it. */
export const layerMounts = ({ sessionId, base, installation }: SandboxSpec): string[] =>
  base === undefined
    ? []
    : [
        `${BASE_FOLDER} volume ${baseVolume(base, installation)} false`,
        `${CHANGES_FOLDER} volume ${sandboxName(sessionId)} false`,
      ];

const volumeMount = (
  source: string,
  target: string,
  labels: Record<string, string>,
  options: Record<string, string> = {},
): MountSettings => ({
  Type: "volume",
  Source: source,
  Target: target,
  VolumeOptions: {
    NoCopy: "type" in options,
    Labels: labels,
    DriverConfig: { Name: "local", Options: options },
  },
});

/** With a dot, which no sandbox's name has in this place: those begin with `longhaul-`, whatever their sessions are called. */
export const cacheName = (cache: string): string => `longhaul.cache-${cache}`;

export const nanoCpus = (spec: SandboxSpec): number => Math.round(spec.cpus * 1e9);

export const tmpOptions = (spec: SandboxSpec): string =>
  `rw,nosuid,nodev,exec,mode=1777,size=${Math.floor(spec.memoryBytes / TMP_SHARE)}`;

/** Whether the workspace is mounted differently than required: only then is a container recreated, on its volume. */
export function isMountedOtherwise(
  { Mounts: mounts }: ContainerInspectInfo,
  { readOnly }: SandboxSpec,
): boolean {
  return (
    mounts.find(({ Destination: mountPoint }) => mountPoint === "/workspace")?.RW === (readOnly === true)
  );
}

const ANY: SandboxSpec = { sessionId: "", image: "", network: "none", memoryBytes: 0, cpus: 0, pids: 0 };

/** Of everything in the profile that no session chooses, but the supervisor's program, which may differ between versions. */
const PROFILE = createHash("sha256")
  .update(JSON.stringify(profileOptions(ANY, new Date(0))))
  .digest("hex")
  .slice(0, 12);
