/** The profile of a service as data: the request that creates it, and how an existing container differs from it. */
import { createHash } from "node:crypto";
import type { ContainerCreateOptions, ContainerInspectInfo } from "dockerode";
import { megabytes } from "../../../config/setting-values.ts";
import type { OwnSession } from "../../sandbox-host.ts";
import type { ServiceSpec, ServiceHome } from "../../service-host.ts";
import {
  isAnonymousVolume,
  sharedIsolation,
  sharedLimits,
  sortedRecord,
  startedDifferences,
  upperNames,
  type Wanted,
  wantedDifferences,
} from "../container-facts.ts";
import { NOFILE, OOM_SCORE_ADJ, ownerLabels, sandboxName, SHM_BYTES } from "../profile.ts";

/** Label of a service's container and volumes: its name. */
export const SERVICE_LABEL = "longhaul.service";
/** Which start of which sandbox it belongs to. */
const HOME_LABEL = "longhaul.service-home";
/** Its place in the order of starts: it is stopped in reverse. */
export const ORDER_LABEL = "longhaul.service-order";
/** A hash of its settings, which also tells a newer version's profile. */
const SETTINGS_LABEL = "longhaul.service-settings";

/** What the entry points of official images need to hand their data to another user, and to become that user. */
const CAPABILITIES = ["CHOWN", "DAC_OVERRIDE", "FOWNER", "SETGID", "SETUID"];
/** Chosen: half of what a sandbox has; databases use some ten. */
const PIDS = 256;
/** The engine keeps this much of a log, so that a service cannot fill the host's disk by talking. */
const LOG = { Type: "json-file", Config: { "max-size": "1m", "max-file": "1" } };
/** Time to write what a database has in memory, in s. Source: Docker's own default. */
const STOP_SECONDS = 10;

/** With a dot after `longhaul`, where no sandbox's name has one, and one before the service's, which has none itself. */
export const serviceContainer = (sessionId: string, service: string): string =>
  `longhaul.service-${sandboxName(sessionId).slice("longhaul-".length)}.${service}`;

/** The volume for one folder of a service whose data is kept. */
export const serviceVolume = (sessionId: string, service: string, folder: string): string =>
  `${serviceContainer(sessionId, service)}.${createHash("sha256").update(folder).digest("hex").slice(0, 8)}`;

export const serviceLabels = (owner: OwnSession, service: string): Record<string, string> => ({
  ...ownerLabels(owner),
  [SERVICE_LABEL]: service,
});

const homeText = ({ container, boot }: ServiceHome): string => `${container} ${boot}`;

/** Whether a container is the one of this start of the sandbox, with these settings. */
export const isAtHome = (labels: Readonly<Record<string, string>>, home: ServiceHome): boolean =>
  labels[HOME_LABEL] === homeText(home);

export const hasSettings = (labels: Readonly<Record<string, string>>, service: ServiceSpec): boolean =>
  labels[SETTINGS_LABEL] === settingsHash(service);

const settingsHash = ({ settings }: ServiceSpec): string =>
  createHash("sha256")
    .update(JSON.stringify([settings, CAPABILITIES, PIDS, LOG]))
    .digest("hex")
    .slice(0, 12);

/** What a service's image says of it. */
export interface ServiceImage {
  readonly environment: readonly string[];
  /** Folders that it declares as volumes. */
  readonly volumes: readonly string[];
  readonly user: string;
}

export interface ServiceRequest {
  readonly home: ServiceHome;
  readonly service: ServiceSpec;
  /** The engine's whole id of the sandbox's container. */
  readonly sandbox: string;
  readonly image: ServiceImage;
}

/** The folders of its kept data. */
export function keptFolders({ settings }: ServiceSpec, image: ServiceImage): readonly string[] {
  if (settings.data !== "kept") return [];
  return settings.dataFolders.length > 0 ? settings.dataFolders : image.volumes;
}

export function serviceOptions({ home, service, sandbox, image }: ServiceRequest): ContainerCreateOptions {
  const { name, settings } = service;
  const { sessionId } = home;
  const memory = megabytes(settings.memory) * 2 ** 20;
  const labels = serviceLabels(home, name);
  return {
    name: serviceContainer(sessionId, name),
    Image: settings.image,
    User: settings.user,
    Entrypoint: settings.entrypoint,
    Cmd: settings.command,
    Env: variablesOf(settings.env),
    Labels: {
      ...labels,
      [HOME_LABEL]: homeText(home),
      [ORDER_LABEL]: String(service.position),
      [SETTINGS_LABEL]: settingsHash(service),
    },
    // We run its test ourselves, and only until it passes.
    Healthcheck: { Test: ["NONE"] },
    StopTimeout: STOP_SECONDS,
    HostConfig: {
      Init: false,
      Privileged: false,
      CapDrop: ["ALL"],
      CapAdd: CAPABILITIES,
      SecurityOpt: ["no-new-privileges:true"],
      NetworkMode: `container:${sandbox}`,
      Mounts: keptFolders(service, image).map((folder) => ({
        Type: "volume",
        Source: serviceVolume(sessionId, name, folder),
        Target: folder,
        VolumeOptions: { NoCopy: false, Labels: labels, DriverConfig: { Name: "local", Options: {} } },
      })),
      Tmpfs: tmpfsOf(service),
      PidsLimit: PIDS,
      Memory: memory,
      MemorySwap: memory,
      NanoCpus: Math.round(settings.cpus * 1e9),
      ShmSize: SHM_BYTES,
      OomScoreAdj: OOM_SCORE_ADJ,
      Ulimits: [
        { Name: "nofile", Soft: NOFILE, Hard: NOFILE },
        { Name: "core", Soft: 0, Hard: 0 },
      ],
      IpcMode: "private",
      RestartPolicy: { Name: "no" },
      LogConfig: LOG,
      Runtime: home.runtime,
    },
  };
}

const variablesOf = (env: Readonly<Record<string, string>>): string[] =>
  Object.entries(env).map(([name, value]) => `${name}=${value}`);

const tmpfsOf = ({ settings }: ServiceSpec): Record<string, string> =>
  Object.fromEntries(settings.tmpfs.map((folder) => [folder, "rw,nosuid,nodev"]));

/** How an existing container differs from the service's profile, one line each; empty if it matches. */
export function serviceDifferences(
  info: ContainerInspectInfo,
  request: ServiceRequest,
  around: { readonly defaultRuntime: string; readonly appArmor: boolean },
): string[] {
  const { service, home } = request;
  const options = serviceOptions(request);
  const host = info.HostConfig;
  const ours = options.HostConfig ?? {};
  const expected: Wanted = {
    labels: [labelsIn(info.Config.Labels, options.Labels ?? {}), options.Labels],
    image: [info.Config.Image, service.settings.image],
    user: [info.Config.User, service.settings.user ?? request.image.user],
    environment: [
      (info.Config.Env ?? []).toSorted(),
      [
        ...withoutNames(request.image.environment, service.settings.env),
        ...variablesOf(service.settings.env),
      ].toSorted(),
    ],
    "health check": [info.Config.Healthcheck?.Test ?? [], ["NONE"]],
    terminal: [info.Config.Tty ?? false, false],
    ...isolationOf(info, ours),
    runtime: [host.Runtime, home.runtime ?? around.defaultRuntime],
    mounts: mountsOf(info, request),
    "temporary folders": [sortedRecord(host.Tmpfs), sortedRecord(tmpfsOf(service))],
    ...limitsOf(host, ours),
  };
  return [
    ...wantedDifferences(expected),
    ...startedDifferences(info, { appArmor: around.appArmor, memorySwap: ours.MemorySwap }),
  ];
}

type HostConfig = ContainerInspectInfo["HostConfig"];
type WantedHost = NonNullable<ContainerCreateOptions["HostConfig"]>;

/** That of the labels which we set: an image may have others. */
const labelsIn = (labels: Readonly<Record<string, string>>, ours: Readonly<Record<string, string>>) =>
  Object.fromEntries(Object.keys(ours).map((name) => [name, labels[name]]));

const withoutNames = (entries: readonly string[], replaced: Readonly<Record<string, string>>): string[] =>
  entries.filter((entry) => !Object.hasOwn(replaced, entry.split("=")[0] ?? ""));

const isolationOf = (info: ContainerInspectInfo, ours: WantedHost): Wanted => {
  const host = info.HostConfig;
  return {
    init: [host.Init ?? false, false],
    ...sharedIsolation(host),
    "added capabilities": [upperNames(host.CapAdd), CAPABILITIES],
    network: [host.NetworkMode, ours.NetworkMode],
    networks: [Object.keys(info.NetworkSettings.Networks), []],
    "host names": [[...(host.ExtraHosts ?? []), ...(host.Links ?? [])], []],
  };
};

function mountsOf(info: ContainerInspectInfo, { home, service, image }: ServiceRequest): Wanted[string] {
  const folders = keptFolders(service, image);
  const mounts = info.Mounts.filter(
    (mount) =>
      !service.settings.tmpfs.includes(mount.Destination) &&
      !isAnonymousVolume(
        mount,
        image.volumes.filter((folder) => !folders.includes(folder)),
      ),
  );
  return [
    mounts.map(({ Destination: folder, Type, Name, RW }) => `${folder} ${Type} ${Name} ${RW}`).sort(),
    folders
      .map((folder) => `${folder} volume ${serviceVolume(home.sessionId, service.name, folder)} true`)
      .sort(),
  ];
}

const limitsOf = (host: HostConfig, ours: WantedHost): Wanted => ({
  processes: [host.PidsLimit, PIDS],
  memory: [host.Memory, ours.Memory],
  cpus: [host.NanoCpus, ours.NanoCpus],
  ...sharedLimits(host),
  log: [
    [host.LogConfig?.Type, sortedRecord(host.LogConfig?.Config)],
    [LOG.Type, sortedRecord(LOG.Config)],
  ],
});
