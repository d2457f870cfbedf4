/** What a container's profile is compared by, for sandboxes and their services. */
import type { ContainerInspectInfo, Ulimit } from "dockerode";
import { cutChars } from "../../text/cut.ts";
import { NOFILE, OOM_SCORE_ADJ, SHM_BYTES } from "./profile.ts";

const MAX_SHOWN_CHARS = 200;

/** By aspect of the profile, in the order in which differences are listed. */
export type Wanted = Record<string, readonly [actual: unknown, expected: unknown]>;

/** One line for each aspect that differs. */
export const wantedDifferences = (aspects: Wanted): string[] =>
  Object.entries(aspects)
    .filter(([, [actual, expected]]) => JSON.stringify(actual) !== JSON.stringify(expected))
    .map(([what, [actual, expected]]) => `${what}: ${brief(actual)} instead of ${brief(expected)}`);

/** Cut, since an environment may be long. */
const brief = (value: unknown): string => cutChars(JSON.stringify(value) ?? "missing", MAX_SHOWN_CHARS);

type HostConfig = ContainerInspectInfo["HostConfig"];

/** What no container of ours has, whoever it is for: rights, devices, names and namespaces of the host or of others. */
export const sharedIsolation = (host: HostConfig): Wanted => ({
  groups: [host.GroupAdd ?? [], []],
  "control group": [host.CgroupParent ?? "", ""],
  "kernel settings": [sortedRecord(host.Sysctls), {}],
  "runtime's annotations": [sortedRecord("Annotations" in host ? host.Annotations : {}), {}],
  privileged: [host.Privileged, false],
  "dropped capabilities": [upperNames(host.CapDrop), ["ALL"]],
  "security options": [host.SecurityOpt, ["no-new-privileges:true"]],
  nameservers: [[...(host.Dns ?? []), ...(host.DnsOptions ?? []), ...(host.DnsSearch ?? [])], []],
  "published ports": [Object.keys(sortedRecord(host.PortBindings)), []],
  "all ports published": [host.PublishAllPorts ?? false, false],
  "host folders": [host.Binds ?? [], []],
  "volumes of others": [host.VolumesFrom ?? [], []],
  devices: [[...(host.Devices ?? []), ...(host.DeviceRequests ?? [])], []],
  "device rules": [host.DeviceCgroupRules ?? [], []],
  "process namespace": [host.PidMode, ""],
  "user namespace": [host.UsernsMode ?? "", ""],
  "host name namespace": [host.UTSMode ?? "", ""],
  "shared memory namespace": [host.IpcMode, "private"],
});

export const sharedLimits = (host: HostConfig): Wanted => ({
  "shared memory": [host.ShmSize, SHM_BYTES],
  "limits of a process": [limitTexts(host.Ulimits), [`core=0:0`, `nofile=${NOFILE}:${NOFILE}`]],
  "out-of-memory rank": [host.OomScoreAdj, OOM_SCORE_ADJ],
  "out-of-memory killer off": [host.OomKillDisable ?? false, false],
  "masked paths": [namedPaths(host, "MaskedPaths").includes("/proc/kcore"), true],
  "read-only paths": [namedPaths(host, "ReadonlyPaths").includes("/proc/sys"), true],
  "restart policy": [host.RestartPolicy?.Name || "no", "no"],
});

/** What the engine adds when a container is started, one line for each that differs. Without swap accounting it reports -1. */
export function startedDifferences(
  info: ContainerInspectInfo,
  expected: { readonly appArmor: boolean; readonly memorySwap: number | undefined },
): string[] {
  const confined = expected.appArmor ? "docker-default" : "";
  const { MemorySwap: swap } = info.HostConfig;
  return [
    ...(info.State.Running && info.AppArmorProfile !== confined
      ? [`AppArmor: ${JSON.stringify(info.AppArmorProfile)} instead of ${JSON.stringify(confined)}`]
      : []),
    ...(swap !== expected.memorySwap && swap !== -1
      ? [`memory with swap: ${swap} instead of ${expected.memorySwap}`]
      : []),
  ];
}

/** With its keys in order: engines differ in that. Empty for anything else. */
export const sortedRecord = (value: unknown): object =>
  typeof value === "object" && value !== null
    ? Object.fromEntries(Object.entries(value).toSorted(([left], [right]) => (left < right ? -1 : 1)))
    : {};

/** Newer engines write CAP_SETUID for SETUID. */
export const upperNames = (names: readonly string[] | null | undefined): string[] =>
  (names ?? []).map((name) => name.toUpperCase().replace(/^CAP_/, "")).sort();

const limitTexts = (ulimits: Ulimit[] | null | undefined): string[] =>
  (ulimits ?? []).map((ulimit) => `${ulimit.Name}=${ulimit.Soft}:${ulimit.Hard}`).sort();

function namedPaths(host: object, name: "MaskedPaths" | "ReadonlyPaths"): readonly unknown[] {
  const paths: unknown = Object.entries(host).find(([key]) => key === name)?.[1];
  return Array.isArray(paths) ? paths : [];
}

/** A volume without a name of ours, for what the image declares. @param volumes those folders */
export const isAnonymousVolume = (
  mount: ContainerInspectInfo["Mounts"][number],
  volumes: readonly string[],
): boolean =>
  volumes.includes(mount.Destination) && mount.Type === "volume" && /^[0-9a-f]{64}$/.test(mount.Name ?? "");
