/** How an existing container differs from the profile of a session's sandbox. */
import type { ContainerInspectInfo } from "dockerode";
import { PROTOCOL } from "../agent/sources.ts";
import { CACHE_FOLDER, hasEgress, type SandboxSpec } from "../sandbox-host.ts";
import {
  isAnonymousVolume,
  sharedIsolation,
  sharedLimits,
  startedDifferences,
  upperNames,
  type Wanted,
  wantedDifferences,
} from "./container-facts.ts";
import {
  BESIDE_LABEL,
  EGRESS_FOLDER,
  EGRESS_TOKEN_LABEL,
  egressEnvironment,
  cacheName,
  CAPABILITIES,
  ENTRYPOINT,
  nanoCpus,
  networkMode,
  PROTOCOL_LABEL,
  layerMounts,
  serviceHosts,
  INSTALLATION_LABEL,
  SESSION_LABEL,
  labelledSession,
  SOURCE_VARIABLE,
  tmpOptions,
  workspaceVolume,
} from "./profile.ts";

/** What a container inherits from its engine and its image. */
export interface Surroundings {
  readonly defaultRuntime: string;
  /** Whether the engine confines containers with AppArmor. */
  readonly appArmor: boolean;
  /** `NAME=value`, from the image. */
  readonly imageEnvironment: readonly string[];
  /** The base image, if the image keeps a set-up. */
  readonly madeFrom?: string | undefined;
  readonly imageLabels?: Readonly<Record<string, string>>;
  /** The image by digest, or its id if no registry has it; undefined if it is gone. */
  readonly image?: string | undefined;
  /** Folders that the image declares as volumes. */
  readonly volumes?: readonly string[];
  /** The volume with the egress proxy's socket. */
  readonly egressVolume?: string;
}

/**
 * How the container differs from its profile, one line each; empty if it matches. Stricter limits count as a difference
 * too: a sandbox must match its session's configuration exactly.
 */
export function differences(info: ContainerInspectInfo, spec: SandboxSpec, around: Surroundings): string[] {
  const expectations = {
    ...wantedProgram(info, spec, around),
    ...wantedIsolation(info, spec, around),
    ...wantedMounts(info, spec, around),
    ...wantedLimits(info, spec),
  };
  const { appArmor } = around;
  return [
    ...wantedDifferences(expectations),
    ...startedDifferences(info, { appArmor, memorySwap: spec.memoryBytes }),
  ];
}

function wantedProgram(
  info: ContainerInspectInfo,
  spec: SandboxSpec,
  { imageEnvironment, madeFrom }: Surroundings,
): Wanted {
  const added = hasEgress(spec) ? egressEnvironment(info.Config.Labels[EGRESS_TOKEN_LABEL]) : [];
  return {
    session: [info.Config.Labels[SESSION_LABEL], labelledSession(spec)],
    "session beside": [info.Config.Labels[BESIDE_LABEL] ?? "", spec.beside ?? ""],
    installation: [info.Config.Labels[INSTALLATION_LABEL] ?? "", spec.installation ?? ""],
    protocol: [info.Config.Labels[PROTOCOL_LABEL], String(PROTOCOL)],
    image: [madeFrom ?? info.Config.Image, spec.image],
    user: [info.Config.User, "0:0"],
    "working folder": [info.Config.WorkingDir, "/workspace"],
    environment: [
      environment(info.Config.Env),
      environment([`${SOURCE_VARIABLE}=`, ...added, ...without(imageEnvironment, added)]),
    ],
    "health check": [info.Config.Healthcheck?.Test ?? [], ["NONE"]],
    terminal: [info.Config.Tty ?? false, false],
    program: [info.Config.Entrypoint, ENTRYPOINT],
    arguments: [info.Config.Cmd ?? [], []],
  };
}

function wantedIsolation(
  info: ContainerInspectInfo,
  spec: SandboxSpec,
  { defaultRuntime }: Surroundings,
): Wanted {
  const host = info.HostConfig;
  return {
    init: [host.Init, true],
    runtime: [host.Runtime, spec.runtime ?? defaultRuntime],
    ...sharedIsolation(host),
    "added capabilities": [upperNames(host.CapAdd), CAPABILITIES],
    network: [host.NetworkMode, networkMode(spec)],
    networks: [Object.keys(info.NetworkSettings.Networks), [networkMode(spec)]],
    "host names": [[...(host.ExtraHosts ?? []), ...(host.Links ?? [])], serviceHosts(spec) ?? []],
  };
}

function wantedMounts(
  { HostConfig: host, Mounts: all }: ContainerInspectInfo,
  spec: SandboxSpec,
  { egressVolume, volumes = [] }: Surroundings,
): Wanted {
  const mounts = all.filter((mount) => mount.Destination !== "/tmp");
  const workspace = mounts.find((mount) => mount.Destination === "/workspace");
  const moreMounts = mounts.filter((mount) => mount !== workspace && !isAnonymousVolume(mount, volumes));
  return {
    volume: [
      [workspace?.Type, workspace?.Name, workspace?.Destination],
      ["volume", workspaceVolume(spec), "/workspace"],
    ],
    "workspace writable": [workspace?.RW, spec.readOnly !== true],
    "further mounts": [
      moreMounts.map((mount) => `${mount.Destination} ${mount.Type} ${mount.Name} ${mount.RW}`).sort(),
      [
        ...layerMounts(spec),
        ...(hasEgress(spec) ? [`${EGRESS_FOLDER} volume ${egressVolume} false`] : []),
        ...(spec.cache === undefined ? [] : [`${CACHE_FOLDER} volume ${cacheName(spec.cache)} true`]),
      ].sort(),
    ],
    "temporary folders": [host.Tmpfs, { "/tmp": tmpOptions(spec) }],
  };
}

function wantedLimits({ HostConfig: host }: ContainerInspectInfo, spec: SandboxSpec): Wanted {
  return {
    processes: [host.PidsLimit, spec.pids],
    memory: [host.Memory, spec.memoryBytes],
    cpus: [host.NanoCpus, nanoCpus(spec)],
    ...sharedLimits(host),
    log: [host.LogConfig?.Type, "none"],
  };
}

/** Sorted; the supervisor's program, which differs between versions, by name only. */
const environment = (entries: readonly string[] | null | undefined): string[] =>
  (entries ?? []).map((entry) => (entry.startsWith(`${SOURCE_VARIABLE}=`) ? SOURCE_VARIABLE : entry)).sort();

/** The image's variables that ours do not replace, nor the supervisor's, which an image that keeps a set-up has. */
function without(entries: readonly string[], replaced: readonly string[]): string[] {
  const names = new Set([SOURCE_VARIABLE, ...replaced.map((entry) => entry.split("=")[0])]);
  return entries.filter((entry) => !names.has(entry.split("=")[0]));
}

/** Fields of `/proc/self/status` by name. */
export type KernelStatus = Readonly<Record<string, string>>;

/** SETGID (6) and SETUID (7), which the supervisor needs to become the tools' user. */
const BOUNDING_SET = 0xc0n;

/**
 * Compares the supervisor's confinement, as the kernel reports it inside the sandbox, with what it must be.
 * @returns what is missing, one line each. An engine can be configured to leave these restrictions out for all its containers, which
 * inspecting a container does not show.
 * @param runtime a runtime other than the engine's default, which may filter system calls invisibly to the sandbox
 */
export function isolationGaps(status: KernelStatus, runtime: string | undefined): string[] {
  const gaps: string[] = [];
  const expect = (name: string, expected: string) => {
    if (status[name] !== expected)
      gaps.push(`${name} is ${status[name] ?? "unknown"} instead of ${expected}`);
  };
  if (runtime === undefined) expect("Seccomp", "2");
  expect("NoNewPrivs", "1");
  const bounding = status["CapBnd"] ?? "";
  if (!/^[0-9a-f]+$/.test(bounding) || BigInt(`0x${bounding}`) !== BOUNDING_SET)
    gaps.push(`CapBnd is ${bounding || "unknown"} instead of ${BOUNDING_SET.toString(16)}`);
  return gaps;
}
