/**
 * The profile of a sandbox as data: the create request, and how an existing container differs from it. Pure.
 * Source: survey of reliability, S1–S7. Capabilities: the supervisor needs SETUID and SETGID to become uid 1000; it does not need KILL, because it takes the tools'
 * effective uid to signal (measured: docs/decisions).
 */
import { createHash } from "node:crypto";
import type { ContainerCreateOptions, ContainerInspectInfo, MountSettings, Ulimit } from "dockerode";
import { cutChars } from "../../contract/cut-text.ts";
import { PROTOCOL, pythonArguments, supervisorSource } from "../agent/sources.ts";
import { CACHE_FOLDER, type SandboxSpec } from "../spec.ts";
import { EGRESS_FOLDER, EGRESS_TOKEN_LABEL, egressEnvironment, type EgressPlace } from "./egress-place.ts";

export const SESSION_LABEL = "longhaul.session";
export const CREATED_LABEL = "longhaul.created";
/** On the container that applies a sandbox's network rules; its value is the session. */
export const GUARD_LABEL = "longhaul.guard";
/** On a volume of package caches. */
const CACHE_LABEL = "longhaul.cache";
const PROTOCOL_LABEL = "longhaul.protocol";
const SOURCE_VARIABLE = "LONGHAUL_SUPERVISOR";
const NAME_CHARS = 100;
const MAX_SHOWN_CHARS = 200;

const ENTRYPOINT = pythonArguments(SOURCE_VARIABLE);

const CAPABILITIES = ["SETGID", "SETUID"];
/** /tmp counts as the sandbox's memory: at most one part in this many, so that a full /tmp does not end the tools. */
const TMP_SHARE = 4;
const NOFILE = 16_384;
const SHM_BYTES = 64 * 1024 * 1024;
/** The kernel kills a sandbox before the host's services; tools have 1000, so they go first. */
const OOM_SCORE_ADJ = 500;

/** Name of the session's container and of its volume: the id, if Docker takes it, else cut and with a hash. */
export function sandboxName(sessionId: string): string {
  const plain = sessionId.replaceAll(/[^A-Za-z0-9_.-]/g, "-");
  if (plain === sessionId && plain.length <= NAME_CHARS) return `longhaul-${plain}`;
  const hash = createHash("sha256").update(sessionId).digest("hex").slice(0, 12);
  return `longhaul-${cutChars(plain, NAME_CHARS - 13)}-${hash}`;
}

export function sandboxLabels(sessionId: string, now: Date): Record<string, string> {
  return {
    [SESSION_LABEL]: sessionId,
    [CREATED_LABEL]: now.toISOString(),
    [PROTOCOL_LABEL]: String(PROTOCOL),
  };
}

/** The request that makes the session's sandbox. @param egress with `network: listed` */
export function createOptions(spec: SandboxSpec, now: Date, egress?: EgressPlace): ContainerCreateOptions {
  return {
    name: sandboxName(spec.sessionId),
    Image: spec.keptImage ?? spec.image,
    User: "0:0",
    Hostname: "box",
    WorkingDir: "/workspace",
    Entrypoint: ENTRYPOINT,
    Cmd: [],
    Env: [
      `${SOURCE_VARIABLE}=${supervisorSource}`,
      ...(egress === undefined ? [] : egressEnvironment(sandboxName(spec.sessionId), egress.token)),
    ],
    Labels: {
      ...sandboxLabels(spec.sessionId, now),
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
      Mounts: [
        // Creates the volume if it was removed in between.
        {
          ...volumeMount(sandboxName(spec.sessionId), "/workspace", sandboxLabels(spec.sessionId, now)),
          ReadOnly: spec.readOnly === true,
        },
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
      ...(spec.runtime === undefined ? {} : { Runtime: spec.runtime }),
    },
  };
}

/** With `listed` the sandbox has no interface but its own loopback either. */
const networkMode = ({ network }: SandboxSpec): string => (network === "bridge" ? "bridge" : "none");

/** Outlives sessions: nothing removes it but its owner (docs/sandbox.md). */
const cacheMount = (cache: string): MountSettings =>
  volumeMount(cacheName(cache), CACHE_FOLDER, { [CACHE_LABEL]: cache });

/** @param labels of the volume, if there is none yet */
const volumeMount = (source: string, target: string, labels: Record<string, string>): MountSettings => ({
  Type: "volume",
  Source: source,
  Target: target,
  VolumeOptions: { NoCopy: false, Labels: labels, DriverConfig: { Name: "local", Options: {} } },
});

const cacheName = (cache: string): string => `longhaul-cache-${cache}`;

const nanoCpus = (spec: SandboxSpec): number => Math.round(spec.cpus * 1e9);

const tmpOptions = (spec: SandboxSpec): string =>
  `rw,nosuid,nodev,exec,mode=1777,size=${Math.floor(spec.memoryBytes / TMP_SHARE)}`;

/** What a container inherits from its engine and its image. */
export interface Surroundings {
  readonly defaultRuntime: string;
  /** Whether the engine confines containers with AppArmor. */
  readonly appArmor: boolean;
  /** `NAME=value`, from the image. */
  readonly imageEnvironment: readonly string[];
  /** Of an image that keeps a set-up: the image that it was made from. */
  readonly madeFrom?: string | undefined;
  /** The image by digest, or its id if no registry has it; undefined if it is gone. */
  readonly image?: string | undefined;
  /** The volume with the egress proxy's socket. */
  readonly egressVolume?: string;
}

/** Whether the workspace is mounted differently than required: only then is a container recreated, on its volume. */
export function isMountedOtherwise(
  { Mounts: mounts }: ContainerInspectInfo,
  { readOnly }: SandboxSpec,
): boolean {
  return mounts.find(({ Destination: place }) => place === "/workspace")?.RW === (readOnly === true);
}

/**
 * How the container differs from its profile, one line each; empty if it matches. Stricter limits count as a difference
 * too: a sandbox is as its session's configuration says.
 */
export function differences(
  found: ContainerInspectInfo,
  spec: SandboxSpec,
  { defaultRuntime, appArmor, imageEnvironment, madeFrom, egressVolume }: Surroundings,
): string[] {
  const host = found.HostConfig;
  const name = sandboxName(spec.sessionId);
  const mounts = found.Mounts.filter((each) => each.Destination !== "/tmp");
  const mount = mounts.find((each) => each.Destination === "/workspace");
  const moreMounts = mounts.filter((each) => each !== mount);
  const isListed = spec.network === "listed";
  const own = isListed ? egressEnvironment(name, found.Config.Labels[EGRESS_TOKEN_LABEL]) : [];
  const wanted: Record<string, [actual: unknown, expected: unknown]> = {
    session: [found.Config.Labels[SESSION_LABEL], spec.sessionId],
    protocol: [found.Config.Labels[PROTOCOL_LABEL], String(PROTOCOL)],
    image: [madeFrom ?? found.Config.Image, spec.image],
    user: [found.Config.User, "0:0"],
    "working folder": [found.Config.WorkingDir, "/workspace"],
    environment: [
      environment(found.Config.Env),
      environment([`${SOURCE_VARIABLE}=`, ...own, ...without(imageEnvironment, own)]),
    ],
    "health check": [found.Config.Healthcheck?.Test ?? [], ["NONE"]],
    terminal: [found.Config.Tty ?? false, false],
    program: [found.Config.Entrypoint, ENTRYPOINT],
    arguments: [found.Config.Cmd ?? [], []],
    init: [host.Init, true],
    runtime: [host.Runtime, spec.runtime ?? defaultRuntime],
    groups: [host.GroupAdd ?? [], []],
    "control group": [host.CgroupParent ?? "", ""],
    "kernel settings": [record(host.Sysctls), {}],
    "runtime's annotations": [record("Annotations" in host ? host.Annotations : {}), {}],
    privileged: [host.Privileged, false],
    "dropped capabilities": [upper(host.CapDrop), ["ALL"]],
    "added capabilities": [upper(host.CapAdd), CAPABILITIES],
    "security options": [host.SecurityOpt, ["no-new-privileges:true"]],
    network: [host.NetworkMode, networkMode(spec)],
    networks: [Object.keys(found.NetworkSettings.Networks), [networkMode(spec)]],
    "host names": [[...(host.ExtraHosts ?? []), ...(host.Links ?? [])], []],
    nameservers: [[...(host.Dns ?? []), ...(host.DnsOptions ?? []), ...(host.DnsSearch ?? [])], []],
    "published ports": [Object.keys(record(host.PortBindings)), []],
    "all ports published": [host.PublishAllPorts ?? false, false],
    "host folders": [host.Binds ?? [], []],
    "volumes of others": [host.VolumesFrom ?? [], []],
    devices: [[...(host.Devices ?? []), ...(host.DeviceRequests ?? [])], []],
    "device rules": [host.DeviceCgroupRules ?? [], []],
    "process namespace": [host.PidMode, ""],
    "user namespace": [host.UsernsMode ?? "", ""],
    "host name namespace": [host.UTSMode ?? "", ""],
    "shared memory namespace": [host.IpcMode, "private"],
    volume: [
      [mount?.Type, mount?.Name, mount?.Destination],
      ["volume", name, "/workspace"],
    ],
    "workspace writable": [mount?.RW, spec.readOnly !== true],
    "further mounts": [
      moreMounts.map((each) => `${each.Destination} ${each.Type} ${each.Name} ${each.RW}`).sort(),
      [
        ...(isListed ? [`${EGRESS_FOLDER} volume ${egressVolume} false`] : []),
        ...(spec.cache === undefined ? [] : [`${CACHE_FOLDER} volume ${cacheName(spec.cache)} true`]),
      ].sort(),
    ],
    "temporary folders": [host.Tmpfs, { "/tmp": tmpOptions(spec) }],
    processes: [host.PidsLimit, spec.pids],
    memory: [host.Memory, spec.memoryBytes],
    cpus: [host.NanoCpus, nanoCpus(spec)],
    "shared memory": [host.ShmSize, SHM_BYTES],
    "limits of a process": [limits(host.Ulimits), [`core=0:0`, `nofile=${NOFILE}:${NOFILE}`]],
    "out-of-memory rank": [host.OomScoreAdj, OOM_SCORE_ADJ],
    "out-of-memory killer off": [host.OomKillDisable ?? false, false],
    "masked paths": [pathsOf(host, "MaskedPaths").includes("/proc/kcore"), true],
    "read-only paths": [pathsOf(host, "ReadonlyPaths").includes("/proc/sys"), true],
    "restart policy": [host.RestartPolicy?.Name || "no", "no"],
    log: [host.LogConfig?.Type, "none"],
  };
  const differing = Object.entries(wanted)
    .filter(([, [actual, expected]]) => JSON.stringify(actual) !== JSON.stringify(expected))
    .map(([what, [actual, expected]]) => `${what}: ${brief(actual)} instead of ${brief(expected)}`);
  // The engine sets the profile when it starts the container.
  const confined = appArmor ? "docker-default" : "";
  if (found.State.Running && found.AppArmorProfile !== confined)
    differing.push(
      `AppArmor: ${JSON.stringify(found.AppArmorProfile)} instead of ${JSON.stringify(confined)}`,
    );
  // A kernel without swap accounting makes the engine answer -1: there the memory limit alone holds.
  if (host.MemorySwap !== spec.memoryBytes && host.MemorySwap !== -1) {
    differing.push(`memory with swap: ${host.MemorySwap} instead of ${spec.memoryBytes}`);
  }
  return differing;
}

/** An environment may be long. */
const brief = (value: unknown): string => cutChars(JSON.stringify(value) ?? "missing", MAX_SHOWN_CHARS);

const record = (value: unknown): object => (typeof value === "object" && value !== null ? value : {});

// Newer engines write CAP_SETUID for SETUID.
const upper = (names: readonly string[] | null | undefined): string[] =>
  (names ?? []).map((name) => name.toUpperCase().replace(/^CAP_/, "")).sort();

const limits = (ulimits: Ulimit[] | null | undefined): string[] =>
  (ulimits ?? []).map((each) => `${each.Name}=${each.Soft}:${each.Hard}`).sort();

/** Sorted; of the supervisor's program, which differs between versions, only the name. */
const environment = (entries: readonly string[] | null | undefined): string[] =>
  (entries ?? []).map((entry) => (entry.startsWith(`${SOURCE_VARIABLE}=`) ? SOURCE_VARIABLE : entry)).sort();

/** Of the image's variables, those that ours do not replace; an image that keeps a set-up has the supervisor's. */
function without(entries: readonly string[], replaced: readonly string[]): string[] {
  const names = new Set([SOURCE_VARIABLE, ...replaced.map((entry) => entry.split("=")[0])]);
  return entries.filter((entry) => !names.has(entry.split("=")[0]));
}

function pathsOf(host: object, name: "MaskedPaths" | "ReadonlyPaths"): readonly unknown[] {
  const paths: unknown = Object.entries(host).find(([key]) => key === name)?.[1];
  return Array.isArray(paths) ? paths : [];
}
